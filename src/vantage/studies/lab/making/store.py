"""Where the lab stores finished work: an entry for each piece, named by a digest of everything that it depends on.

LAB/runs/KEY/           a run folder as usual; it has a done.json when all epochs are finished
LAB/cells/KEY.json      the numbers of one measure
LAB/locks/KEY           locked while a process works on KEY
"""

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

from vantage.errors import UserError
from vantage.storage.cache import digest, read_json
from vantage.storage.files import write_json
from vantage.storage.locks import take_lock
from vantage.storage.strangers import check_content

__all__ = ["LabFolder", "is_number"]

_DONE = "done.json"


@dataclass(frozen=True)
class LabFolder:
    """The folder of a lab."""

    folder: Path
    """Its path; the folder need not exist yet."""

    def check(self) -> None:
        """Raises `UserError` unless everything that the lab reads or writes lies inside its folder (`check_content`).
        The number of runs is not limited, since each is read separately."""
        check_content(self.folder, ("cells", "locks", "results", "smoke-results"))
        check_content(self.folder, ("runs", "cache"), sys.maxsize)

    def run(self, key: str) -> Path:
        """The folder of a run."""
        return self.folder / "runs" / key

    def is_trained(self, key: str) -> bool:
        """Whether a run has finished all of its epochs."""
        return (self.run(key) / _DONE).is_file()

    def finish(self, key: str, dependencies: Mapping[str, Any], seconds: float) -> None:
        """Mark a run as finished."""
        write_json(self.run(key) / _DONE, {"about": dependencies, "seconds": round(seconds, 1)})

    def seconds(self, key: str) -> float | None:
        """How long the training of a run took; None if it has not finished."""
        record = read_json(self.run(key) / _DONE)
        seconds = record.get("seconds") if isinstance(record, dict) else None
        return float(seconds) if is_number(seconds) else None

    def result(self, dependencies: Mapping[str, Any]) -> dict[str, Any] | None:
        """The record of a measurement, with its seconds and versions; None if it is not done or its file is
        damaged."""
        record = read_json(self._cell(digest(dependencies)))
        return record if _fits(record, dependencies) else None

    def keep(
        self,
        dependencies: Mapping[str, Any],
        numbers: Mapping[str, float],
        seconds: float,
        computer: Any,
        training_seconds: Mapping[str, float] | None = None,
    ) -> None:
        """Store the numbers of a measurement, with its own seconds, those of its training runs by key, and the
        hardware and versions. Raises `UserError` for numbers that are not finite."""
        if not all(math.isfinite(value) for value in numbers.values()):
            raise UserError(f"a measure gave numbers that are not finite: {dict(numbers)}")
        times = {"seconds": round(seconds, 1), "trained": dict(training_seconds or {})}
        record = {"about": dependencies, "numbers": dict(numbers), **times, "made_on": computer}
        write_json(self._cell(digest(dependencies)), record)

    def records(self) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """The records of all measurements by their keys; None for a file that is damaged or has another key's name."""
        for path in sorted((self.folder / "cells").glob("*.json")):
            record = read_json(path)
            fits = isinstance(record, dict) and _fits(record, record.get("about"))
            yield path.stem, record if fits and _key_of(record["about"]) == path.stem else None

    def take_in(
        self, other: Path, admits: Callable[[Mapping[str, Any]], bool] = lambda record: True
    ) -> tuple[int, int]:
        """Copy from another lab the cells that this one lacks, if `admits` is true of their records. Returns how many
        were copied, and how many were refused because their file is damaged or its name does not match its content.
        Raises `UserError` for a folder that is not a lab."""
        check_content(other, ("cells",))
        if not (other / "cells").is_dir():
            raise UserError(f"{other} is not the folder of a lab: it has no cells")
        copies = misfits = 0
        for key, record in LabFolder(other).records():
            if record is None:
                misfits += 1
            elif not self._cell(key).exists() and admits(record):
                write_json(self._cell(key), record)
                copies += 1
        return copies, misfits

    @contextmanager
    def lock(self, key: str) -> Iterator[bool]:
        """Lock the work on a key for this process; yields False if another process holds the lock. The lock is released
        when the process ends, even if it is killed. Where the file system has no locks, nothing is checked, and two
        processes may do the same work."""
        path = self.folder / "locks" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR)
        try:
            yield take_lock(handle, without=True)
        finally:
            os.close(handle)

    def _cell(self, key: str) -> Path:
        return self.folder / "cells" / f"{key}.json"


def _key_of(dependencies: Any) -> str:
    """The key of what a stranger's cell depends on; empty if it has numbers that no cell has."""
    try:
        return digest(dependencies)
    except ValueError:
        return ""


def _fits(record: Any, dependencies: Any) -> bool:
    if (
        not isinstance(record, dict)
        or not isinstance(dependencies, Mapping)
        or record.get("about") != json.loads(json.dumps(dependencies))
    ):
        return False
    numbers, times, computer = record.get("numbers"), record.get("trained", {}), record.get("made_on", {})
    if not (isinstance(numbers, dict) and isinstance(times, dict) and isinstance(computer, dict)):
        return False
    values = (*numbers.values(), *times.values(), record.get("seconds"))
    return all(map(is_number, values)) and ("made_on" in record or isinstance(record.get("versions"), dict))


def is_number(value: Any) -> TypeGuard[float]:
    """Whether this is a finite number, and one whose square is finite too, since spreads are computed of it."""
    return isinstance(value, float | int) and abs(value) < 1 << 63
