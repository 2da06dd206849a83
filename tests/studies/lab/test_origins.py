"""Cells from elsewhere join a lab only if one kind of computer made all cells of their entry and seed."""

from pathlib import Path
from typing import Any

import pytest
from lab_entries import entry_of

from vantage.cli import main
from vantage.errors import UserError
from vantage.studies.lab import ENTRIES, LabFolder, Origins, Untrained
from vantage.studies.lab.making.compositions import composition


def _computer(processor: str, torch: str = "2.8.0") -> dict[str, Any]:
    hardware = {"processor": processor, "bfloat16": False, "cores": 2, "threads": 1, "gpus": []}
    return {"hardware": hardware, "versions": {"torch": torch}}


XEON, EPYC = _computer("Xeon"), _computer("EPYC")


def _cells(trained: bool) -> list[dict[str, Any]]:
    """What the entry's cells are, in its order: those that are trained, or its baselines."""
    experiments = [cell.experiment for cell in entry_of("jcl-table-1").runnable_cells]
    made = [composition(one) for one in experiments if isinstance(one, Untrained) != trained]
    assert len(made) > 1 or not trained
    return made


def _keep(lab: LabFolder, made: dict[str, Any], seed: int, computer: dict[str, Any]) -> None:
    lab.keep({"made": made, "seed": seed, "train": "images"}, {"knn": 10.0}, 1.0, computer)


def _labs(folder: Path) -> tuple[LabFolder, LabFolder]:
    """A lab with one cell for seed 0, and another lab with the next cell for seeds 0 and 1."""
    mine, theirs = LabFolder(folder / "mine"), LabFolder(folder / "theirs")
    first, second, *_ = _cells(trained=True)
    _keep(mine, first, 0, XEON)
    for seed in (0, 1):
        _keep(theirs, second, seed, EPYC)
    return mine, theirs


def _take_in(mine: LabFolder, theirs: LabFolder) -> tuple[int, int]:
    """How many cells were copied, and how many were left out."""
    origins = Origins(ENTRIES)
    for _, record in mine.records():
        assert record is not None
        origins.add(record)
    copies, misfits = mine.take_in(theirs.folder, origins.admits)
    assert not misfits
    return copies, origins.left_out


def test_a_folder_that_is_refused_needs_no_entries(tmp_path: Path) -> None:
    origins = Origins(pytest.fail("an entry is made") for _ in ENTRIES)
    with pytest.raises(UserError, match="is not the folder of a lab"):
        LabFolder(tmp_path / "mine").take_in(tmp_path, origins.admits)


def test_a_seed_of_an_entry_is_not_mixed(tmp_path: Path) -> None:
    mine, theirs = _labs(tmp_path)
    assert _take_in(mine, theirs) == (1, 1)
    assert [record["about"]["seed"] for _, record in mine.records() if record] in ([0, 1], [1, 0])
    assert _take_in(mine, theirs) == (0, 1), "the seed that was taken in is there already"


@pytest.mark.parametrize("computer", [XEON | {"more": 1}, {"versions": {"torch": "2.8.0"}}, {}])
def test_cells_of_the_same_kind_of_computer_and_of_unknown_ones_join(computer: dict[str, Any], tmp_path: Path) -> None:
    mine, theirs = _labs(tmp_path)
    _keep(theirs, _cells(trained=True)[-1], 0, computer)
    assert _take_in(mine, theirs) == (2, 1)


def test_another_version_of_torch_rounds_differently(tmp_path: Path) -> None:
    mine, theirs = _labs(tmp_path)
    _keep(theirs, _cells(trained=True)[-1], 0, _computer("Xeon", "2.7.0"))
    assert _take_in(mine, theirs) == (1, 2)


def test_baselines_and_cells_of_no_entry_join(tmp_path: Path) -> None:
    mine, theirs = _labs(tmp_path)
    others = [*_cells(trained=False), {"run": "of a later version"}]
    for made in others:
        _keep(theirs, made, 0, EPYC)
    assert _take_in(mine, theirs) == (1 + len(others), 1)


@pytest.mark.slow
def test_the_command_says_how_many_are_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine, theirs = _labs(tmp_path)
    assert main(["reproduce", "--take-in", str(theirs.folder), "--out", str(mine.folder)]) == 0
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("1 cell taken in from") and second.startswith("1 more left out: another kind of computer")
