"""Sweeps that are killed while the folder of a measured run is removed."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kill_moments
import pytest
from small_studies import result_of

from vantage.composition.codec import allowing
from vantage.storage.results import ResultsFile
from vantage.studies.sweep import Study

__all__ = ["MOMENTS", "sweep_until_killed"]


def _dying(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, which ends the process when it has done its work."""

    def call_and_die(*arguments: Any, **named: Any) -> None:
        function(*arguments, **named)
        kill_moments.die()

    return call_and_die


def before_its_row(patch: pytest.MonkeyPatch) -> None:
    """Die when everything is measured."""
    patch.setattr(ResultsFile, "add", lambda *_: kill_moments.die())


def after_its_row(patch: pytest.MonkeyPatch) -> None:
    """Die when the row is written."""
    patch.setattr(ResultsFile, "add", _dying(ResultsFile.add))


def in_mid_removal(patch: pytest.MonkeyPatch) -> None:
    """Die when the row is written and one file of the run is removed."""

    def add(self: ResultsFile[Any], key: str, result: Any, add: Callable[..., None] = ResultsFile.add) -> None:
        add(self, key, result)
        patch.setattr(os, "unlink", _dying(os.unlink))

    patch.setattr(ResultsFile, "add", add)


MOMENTS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    each.__name__: each for each in (before_its_row, after_its_row, in_mid_removal)
}


def sweep_until_killed(study: Study, folder: Path, moment: str) -> None:
    """Make a study in a process that is killed at one of the moments of its first run; without one, at none."""
    with pytest.MonkeyPatch.context() as patch, allowing("tiny"):
        if moment:
            MOMENTS[moment](patch)
        result_of(study, folder)
