"""Several processes share the work of evaluations, with the results of one."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ranks
import shared_evaluations
import torch
from counted_work import KINDS
from shared_evaluations import APART
from torch.testing import assert_close

from vantage.evaluate import PROTOCOLS, Segmentation

SUMMED = ("linear-cached", "finetune", "segmentation", "logistic")
"""What is trained in float64 here, by sums of the shares of all processes."""
FOUR = ("knn", "linear-moco", "finetune", "segmentation")
"""Protocols that four processes try. Segmentation has a step of three images, which four cannot share."""
UNSHARED = {(APART, "images read", 2), (APART, "images encoded", 2), ("segmentation", "maps decoded", 4)}
"""Work that so many processes repeat: their caches differ, or a step has fewer images than there are processes."""


def rounding_of(name: str) -> float:
    """How far a number may be from that of one process. A network may round differently in smaller batches, which
    linear classifiers on random views show; all else that is not summed is equal bit for bit."""
    return 1e-6 if name.startswith(("linear-", *SUMMED)) else 0.0


def same(mine: dict[str, Any], one: dict[str, Any]) -> None:
    """Equal results of every name, up to rounding."""
    assert mine.keys() == one.keys()
    for name in one:
        rounding = rounding_of(name)
        assert_close(mine[name], one[name], rtol=0, atol=rounding, msg=lambda text, name=name: f"{name}: {text}")


def check_work(several: Sequence[dict[str, Any]], one: dict[str, Any], without: str = "") -> None:
    """No process did much more than its share of the work of one process, of any kind; all occur but `without`. It may
    have a part more than others, and looks at an image or two before it begins."""
    assert {kind for done in one.values() for kind, amount in done.items() if amount > 2} == {*KINDS} - {without}
    for rank, mine in enumerate(several):
        too_much = {
            f"{name}: {kind}": (amount, one[name][kind])
            for name, done in mine.items()
            for kind, amount in done.items()
            if amount > 1.25 * one[name][kind] / len(several) + 2 and (name, kind, len(several)) not in UNSHARED
        }
        assert not too_much, f"process {rank}: {too_much}"


def folders(path: Path) -> Path:
    """One folder for the process alone, which is returned, and one for those that share."""
    torch.set_num_threads(1)
    for folder in ("alone", "shared"):
        (path / folder).mkdir()
    return path / "alone"


def judge_on(count: int, names: Sequence[str], path: Path) -> dict[str, Any]:
    """Compares several processes with one, whose judgments are returned."""
    one = shared_evaluations.judged(folders(path), names)
    several = ranks.spawn(partial(shared_evaluations.judge_all, names), path, count)
    works = [{name: result.pop("work") for name, result in mine.items()} for mine in (one, *several)]
    for mine in several:
        same(mine, one)
    check_work(works[1:], works[0], without="rows fitted" if names else "")
    return one


def test_no_protocol_is_forgotten() -> None:
    kinds = {type(protocol) for protocol in shared_evaluations.protocols().values()}
    assert kinds == {*PROTOCOLS, Segmentation}  # detectors are in `detection/test_shared_detectors.py`


@pytest.mark.slow
def test_two_processes_judge_as_one_does(tmp_path: Path) -> None:
    """Measures, choices and losses of every protocol, what it learned and guessed, and how much each process did."""
    judge_on(2, (), tmp_path)


@pytest.mark.slow
def test_four_processes_judge_as_one_does(tmp_path: Path) -> None:
    assert {name.partition(",")[0] for name in judge_on(4, FOUR, tmp_path)} == set(FOUR)


@pytest.mark.slow
def test_two_processes_encode_as_one_does(tmp_path: Path) -> None:
    one = shared_evaluations.encoded(folders(tmp_path))
    two = ranks.spawn(shared_evaluations.encode_all, tmp_path)
    check_work([mine.pop("work") for mine in two], one.pop("work"), without="maps decoded")
    files = {name: one.pop(name) for name in ("rows.npy", "rows.parquet")}
    assert all(torch.equal(two[0][name], file) for name, file in files.items()), "the same bytes"
    for mine in two:
        same({name: value for name, value in mine.items() if name not in files}, one)


@pytest.mark.slow
def test_each_svm_is_fitted_by_one_process(tmp_path: Path) -> None:
    both = ranks.spawn(shared_evaluations.sharing_fits, tmp_path)
    assert [each["own"] for each in both] == [[0, 2, 4], [1, 3]]
    for each in both:
        assert each["rows"].tolist() == [[2.0 * number, 2.0 * number] for number in range(5)]
        assert each["missing"] == (["a", "b"], ["c", "d"]), "a fit is missing for all if one process lacks it"
