"""Several processes share the work of evaluations, with the results of one."""

from pathlib import Path

import pytest
import ranks
import shared_evaluations
import torch
from torch.testing import assert_close

ROUNDING = {"finetune": 1e-3, "tuned": 1e-9, "logistic": 1e-9, "linear-cached": 100 / 30, "segmentation": 1e-5}
"""How far a number may be from that of one process; a fit in float32 may decide otherwise about one of 30 images."""


@pytest.mark.slow
def test_two_processes_judge_as_one_does(tmp_path: Path) -> None:
    for folder in ("alone", "shared"):
        (tmp_path / folder).mkdir()
    torch.set_num_threads(1)
    one, two = shared_evaluations.results_of(tmp_path / "alone"), ranks.spawn(shared_evaluations.evaluate_all, tmp_path)
    for mine in two:
        assert mine.keys() == one.keys()
        for name in one:
            rounding = ROUNDING.get(name, 0.0)
            if not name.startswith("rows."):
                assert_close(
                    mine[name], one[name], rtol=0, atol=rounding, msg=lambda text, name=name: f"{name}: {text}"
                )
    for name in ("rows.npy", "rows.parquet"):
        assert torch.equal(two[0][name], one[name]), "the same bytes"


@pytest.mark.slow
def test_each_svm_is_fitted_by_one_process(tmp_path: Path) -> None:
    both = ranks.spawn(shared_evaluations.sharing_fits, tmp_path)
    assert [each["own"] for each in both] == [[0, 2, 4], [1, 3]]
    for each in both:
        assert each["rows"].tolist() == [[2.0 * number, 2.0 * number] for number in range(5)]
        assert each["missing"] == (["a", "b"], ["c", "d"]), "a fit is missing for all if one process lacks it"
