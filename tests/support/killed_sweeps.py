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


def _dying(function: Callable[..., Any], calls: int, after: bool) -> Callable[..., Any]:
    """The function; its call with this number ends the process, before or after it has done its work."""
    made = [0]

    def call_or_die(*arguments: Any, **named: Any) -> Any:
        made[0] += 1
        if made[0] == calls and not after:
            kill_moments.die()
        result = function(*arguments, **named)
        if made[0] == calls:
            kill_moments.die()
        return result

    return call_or_die


def before_its_row(patch: pytest.MonkeyPatch) -> None:
    """Die when everything is measured."""
    patch.setattr(ResultsFile, "add", _dying(ResultsFile.add, 1, after=False))


def after_its_row(patch: pytest.MonkeyPatch) -> None:
    """Die when the row is written."""
    patch.setattr(ResultsFile, "add", _dying(ResultsFile.add, 1, after=True))


def in_mid_removal(patch: pytest.MonkeyPatch) -> None:
    """Die when the row is written and one file of the run is removed."""

    def add(self: ResultsFile[Any], key: str, result: Any, add: Callable[..., None] = ResultsFile.add) -> None:
        add(self, key, result)
        patch.setattr(os, "unlink", _dying(os.unlink, 1, after=True))

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
