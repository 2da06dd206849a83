"""Where the lab keeps what is done: a folder for each piece of work, named by a digest of all that it depends on.

LAB/runs/KEY/           a run as the library keeps it; done.json when all epochs are there
LAB/cells/KEY.json      what one measure found of it
LAB/locks/KEY           held while somebody works on KEY
"""

import fcntl
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.cache import hash_of, read_json
from vantage.storage.files import write_json

__all__ = ["Lab", "digest"]

_DONE = "done.json"


def digest(about: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that depend on plain facts, whatever their order."""
    return hash_of([json.dumps(about, sort_keys=True, allow_nan=False).encode()])[:16]


@dataclass(frozen=True)
class Lab:
    """The folder."""

    folder: Path
    """It need not exist yet."""

    def run(self, key: str) -> Path:
        """Folder of a run."""
        return self.folder / "runs" / key

    def trained(self, key: str) -> bool:
        """Whether all epochs of a run are there."""
        return (self.run(key) / _DONE).is_file()

    def finish(self, key: str, about: Mapping[str, Any], seconds: float) -> None:
        """A run is done."""
        write_json(self.run(key) / _DONE, {"about": about, "seconds": round(seconds, 1)})

    def seconds(self, key: str) -> float | None:
        """What the training of a run took."""
        done = read_json(self.run(key) / _DONE)
        return float(done["seconds"]) if isinstance(done, dict) else None

    def result(self, about: Mapping[str, Any]) -> dict[str, Any] | None:
        """What a measure found, with its seconds and versions; none where it is not done, or the file is damaged."""
        record = read_json(self._cell(digest(about)))
        return record if _fits(record, about) else None

    def keep(
        self,
        about: Mapping[str, Any],
        numbers: Mapping[str, float],
        seconds: float,
        made_on: Any,
        trained: Mapping[str, float] | None = None,
    ) -> None:
        """Keep what a measure found, with what its own seconds were, those of its trainings by their keys, and where it
        was made. Raises `UserError` for numbers that are not finite."""
        if not all(math.isfinite(value) for value in numbers.values()):
            raise UserError(f"a measure gave numbers that are not finite: {dict(numbers)}")
        spent = {"seconds": round(seconds, 1), "trained": dict(trained or {})}
        record = {"about": about, "numbers": dict(numbers), **spent, "made_on": made_on}
        write_json(self._cell(digest(about)), record)

    def take_in(self, other: Path) -> tuple[int, int]:
        """Copy the cells of a lab made elsewhere that this one lacks: how many were taken, and how many refused because
        their file is damaged, or is not named by what it says it depends on. Raises `UserError` where no lab is."""
        if not (other / "cells").is_dir():
            raise UserError(f"{other} is not the folder of a lab: it has no cells")
        taken = refused = 0
        for path in sorted((other / "cells").glob("*.json")):
            record = read_json(path)
            if (
                not isinstance(record, dict)
                or not _fits(record, record.get("about"))
                or digest(record["about"]) != path.stem
            ):
                refused += 1
            elif not self._cell(path.stem).exists():
                write_json(self._cell(path.stem), record)
                taken += 1
        return taken, refused

    @contextmanager
    def held(self, key: str) -> Iterator[bool]:
        """Whether the work of this key is ours for a while; not where another process has it. A process that ends, in
        whatever way, lets go."""
        path = self.folder / "locks" / key
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_CREAT | os.O_RDWR)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True
        finally:
            os.close(handle)

    def _cell(self, key: str) -> Path:
        return self.folder / "cells" / f"{key}.json"


def _fits(record: Any, about: Any) -> bool:
    if (
        not isinstance(record, dict)
        or not isinstance(about, Mapping)
        or record.get("about") != json.loads(json.dumps(about))
    ):
        return False
    numbers = record.get("numbers")
    return isinstance(numbers, dict) and all(isinstance(v, float | int) and math.isfinite(v) for v in numbers.values())
