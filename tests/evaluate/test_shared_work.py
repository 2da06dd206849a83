"""Several processes share the work of evaluations, with the results of one."""

from pathlib import Path

import judging
import pytest
import ranks
import torch
from torch.testing import assert_close


@pytest.mark.slow
def test_two_processes_judge_as_one_does(tmp_path: Path) -> None:
    for folder in ("alone", "shared"):
        (tmp_path / folder).mkdir()
    torch.set_num_threads(1)
    one, two = judging.results_of(tmp_path / "alone"), ranks.spawn(judging.judging, tmp_path)
    for mine in two:
        assert mine.keys() == one.keys()
        for name in one:
            rounding = {"finetune": 1e-3, "linear-moco": 0.0, "tuned": 1e-9, "segmentation": 1e-5}.get(name, 0.0)
            if not name.startswith("rows."):
                assert_close(
                    mine[name], one[name], rtol=0, atol=rounding, msg=lambda text, name=name: f"{name}: {text}"
                )
    for name in ("rows.npy", "rows.parquet"):
        assert torch.equal(two[0][name], one[name]), "the same bytes"
