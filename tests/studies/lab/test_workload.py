"""What goes wrong in one of several processes of `reproduce --jobs` reaches the user as it does from a single one."""

import errno
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from vantage.cli import main
from vantage.errors import UnreadableImage
from vantage.studies import lab
from vantage.studies.lab import Cell, Entry
from vantage.studies.lab.experiments.toys import NegativeSpread

pytestmark = pytest.mark.slow

ENTRY = Entry("an-entry", "A", "Table 1", "a toy that fails", claims=(), cells=())


def unreadable_image() -> None:
    raise UnreadableImage("a.png", "it is cut short")


def full_disk() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "rows.json")


def kill_process() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def bug() -> None:
    raise ZeroDivisionError("a mistake of ours")


ENDS: dict[str, Callable[[], None]] = {
    "unreadable": unreadable_image,
    "full disk": full_disk,
    "killed": kill_process,
    "bug": bug,
}


@dataclass(frozen=True)
class Failing:
    """A toy that ends as one of `ENDS` does."""

    end: str
    name = "failing"
    version = 1

    def measure(self, seed: int) -> dict[str, float]:
        ENDS[self.end]()
        return {}


def reproduce(end: str, out: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """The exit status of an entry with two processes, whose second cell fails."""
    cells = (Cell("whole", NegativeSpread((0.0,), (4,))), Cell("broken", Failing(end)))
    monkeypatch.setattr(lab, "ENTRIES", (replace(ENTRY, cells=cells),))
    return main(["reproduce", "an-entry", "--level", "smoke", "--seeds", "0", "--jobs", "2", "--out", str(out)])


@pytest.mark.parametrize(
    ("end", "message"),
    [
        ("unreadable", "cannot read the image a.png: it is cut short"),
        (
            "full disk",
            "rows.json could not be written: No space left on device. Free some space and run the same again",
        ),
        (
            "killed",
            "SIGKILL ended a process of --jobs, which may mean that memory ran out: run the same command again,",
        ),
    ],
)
def test_a_problem_in_a_process_is_one_sentence(
    end: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert reproduce(end, tmp_path, monkeypatch) == 2
    lines = capfd.readouterr().err.splitlines()
    assert [line.startswith(f"vantage: {message}") for line in lines if not line.startswith("to be done: ")] == [True]
    assert len(list((tmp_path / "cells").iterdir())) == 1, "finished work is kept"


def test_a_bug_in_a_process_is_not_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert reproduce("bug", tmp_path, monkeypatch) == 1
    error = capfd.readouterr().err
    assert "ZeroDivisionError: a mistake of ours" in error and "vantage: this is a bug" in error
