"""The numbers that a run reports, row by row."""

import json
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.files import write_text

__all__ = ["Metrics", "read_metrics"]


class Metrics:
    """`metrics.jsonl`, a line for each epoch, and the same numbers as TensorBoard events."""

    def __init__(self, folder: Path, step: int) -> None:
        """Rows after `step` are dropped, since a resumed run writes them again."""
        from torch.utils.tensorboard.writer import SummaryWriter  # half a second to import: only where a run trains

        self.path = folder / "metrics.jsonl"
        rows = [row for row in read_metrics(folder) if row["step"] <= step]
        write_text(self.path, "".join(json.dumps(row) + "\n" for row in rows))
        self.events = SummaryWriter(str(folder / "events"), purge_step=step + 1 if step else None)

    def write(self, row: dict[str, Any]) -> None:
        """Add a row; it has a `step`. Raises `UserError` if the disk is full; resuming drops a line cut short."""
        try:
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            for name, value in row.items():
                if isinstance(value, float):
                    self.events.add_scalar(name, value, row["step"])
            self.events.flush()
        except OSError as problem:
            raise UserError(
                f"{self.path.name} and its events could not be written to {self.path.parent}: "
                f"{problem.strerror or problem}. Free some space and continue with `vantage resume {self.path.parent}`"
            ) from problem

    def close(self) -> None:
        """Flush and close the events."""
        self.events.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The rows written so far, without a last line that a kill cut short."""
    path = folder / "metrics.jsonl"
    rows = []
    for line in path.read_text(errors="replace").splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            break
        if _is_row(row):  # a line of another program is left out
            rows.append(row)
    return rows


def _is_row(row: Any) -> bool:
    """Whether a line holds what `Metrics` writes: a step, mostly an epoch, and numbers beside a warning in words and a
    best value that may be none yet."""
    if not isinstance(row, dict) or not all(isinstance(row.get(name, 0), int) for name in ("step", "epoch")):
        return False
    if "step" not in row or not isinstance(row.get("warning", ""), str):
        return False
    numbers = [value for name, value in row.items() if name not in ("warning", "best")]
    return all(isinstance(value, float) or isinstance(value, int) and abs(value) < 1 << 63 for value in numbers)
