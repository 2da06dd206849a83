"""An evaluation that is killed by SIGKILL leaves the run and the cache whole; repeated, it gives the same numbers."""

import json
from pathlib import Path
from typing import Any

import kills
import pytest
from killed_evaluations import PROTOCOLS, judge, write_run

from vantage.training import checkpoint


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run and the images, which all evaluations read."""
    folder = tmp_path_factory.mktemp("shared")
    write_run(folder)
    return folder


CELLS = [(name, count) for count in (1, 2) for name in PROTOCOLS]
FAST = ("linear-moco", 1)


@pytest.mark.parametrize(
    ("name", "count"), [pytest.param(*cell, marks=() if cell == FAST else pytest.mark.slow) for cell in CELLS]
)
def test_a_killed_evaluation_gives_the_same_numbers_when_repeated(
    name: str, count: int, shared: Path, tmp_path: Path
) -> None:
    whole = _measures(name, count, shared, tmp_path / "whole")
    newest = checkpoint.latest(shared / "run")
    assert newest is not None
    tensors = newest.joinpath("tensors.safetensors").read_bytes()
    finished = 0  # before the kill: of two processes, the first may write fewer files than last time, or more
    for moment in sorted({1, whole["written"] // 2 + 1, whole["written"]}):  # the last file is the result itself
        folder = tmp_path / f"killed-{moment}"
        folder.mkdir()
        finished += kills.all_finish(count, name, shared, folder, moment, task=judge)
        assert finished <= (moment > 1 and count > 1), "the evaluation was not killed"
        assert _measures(name, count, shared, folder)["measures"] == whole["measures"]
    assert newest.joinpath("tensors.safetensors").read_bytes() == tensors


def _measures(name: str, count: int, shared: Path, folder: Path) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    assert kills.all_finish(count, name, shared, folder, None, task=judge), "the evaluation failed"
    return json.loads((folder / "measures.json").read_text())
