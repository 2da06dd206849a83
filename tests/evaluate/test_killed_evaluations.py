"""An evaluation that is killed by SIGKILL leaves the run and the cache whole; repeated, it gives the same numbers."""

from pathlib import Path

import pytest
from killed_evaluations import PROTOCOLS, cell, write_run


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
    outcome = cell(name, count, shared, tmp_path)
    assert outcome["in time"], "the evaluation was not killed"
    assert outcome["equal"] == outcome["kills"] and outcome["run unchanged"], outcome
