"""The numbers that a run reports, row by row."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.events import Events
from vantage.storage.files import append, not_written, write_text

__all__ = ["Metrics", "last_numbers", "read_metrics"]


_EARLIER = {"rate": "learning_rate"}
"""Names of numbers in the rows of earlier versions, with their present names."""


class Metrics:
    """`metrics.jsonl`, a line for each epoch, and the same numbers as TensorBoard events."""

    def __init__(self, folder: Path, step: int, again: str = "the same command") -> None:
        """Rows after `step` are dropped, since a resumed run writes them again. `again` names the command that
        continues the run, for the message about a full disk. Raises `WriteError` if the disk is full."""
        self.path, self._again = folder / "metrics.jsonl", again
        rows = [row for row in read_metrics(folder) if row["step"] <= step]
        write_text(self.path, "".join(json.dumps(row) + "\n" for row in rows))
        with self._reporting():
            self.events = Events(folder, step)

    def write(self, row: dict[str, Any]) -> None:
        """Add a row, which has a `step`. Raises `WriteError` if the disk is full; resuming drops an incomplete line."""
        with self._reporting():
            append(self.path, json.dumps(row).encode() + b"\n")
            self.events.write({name: value for name, value in row.items() if isinstance(value, float)}, row["step"])

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except OSError as problem:
            has_checkpoint = any(self.path.parent.glob("checkpoint/step-*"))
            then = f"{'continue' if has_checkpoint else 'start again at the first step'} with {self._again}"
            what = f"{self.path.name} and its events"
            raise not_written(what, self.path.parent, problem, f"Free some space and {then}") from problem


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The rows written so far, without a last line that is incomplete because the run was killed."""
    path = folder / "metrics.jsonl"
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if _is_row(row):  # lines of other programs are left out
            rows.append({_EARLIER.get(name, name): value for name, value in row.items()})
    return rows


def last_numbers(folder: Path, *names: str) -> list[float]:
    """The numbers with these names in the last row. Raises `UserError` if there is no row, or it lacks one of them."""
    rows = read_metrics(folder)
    if not rows or not all(name in rows[-1] for name in names):
        raise UserError(
            f"{folder / 'metrics.jsonl'} does not end with a row that has {' and '.join(names)}: remove the folder of"
            " this run, and it is trained again"
        )
    return [float(rows[-1][name]) for name in names]


def _is_row(row: Any) -> bool:
    """Whether a line holds what `Metrics` writes: a step, usually an epoch, and numbers; also a warning in words, and
    a best value that may be None."""
    if not isinstance(row, dict) or not all(isinstance(row.get(name, 0), int) for name in ("step", "epoch")):
        return False
    if "step" not in row or not isinstance(row.get("warning", ""), str):
        return False
    numbers = [value for name, value in row.items() if name not in ("warning", "best")]
    return all(isinstance(value, float) or isinstance(value, int) and abs(value) < 1 << 63 for value in numbers)
