"""What a sweep measures, row by row, and the file that keeps it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from vantage.composition.codec import encode
from vantage.errors import UserError
from vantage.storage.cache import hash_of
from vantage.storage.files import write_json
from vantage.studies.analyse.held_out import BranchInformation
from vantage.training.run import Run

__all__ = ["RANDOM", "RAW", "SCHEMA", "Kept", "SweepRow", "digest", "of_run"]

RAW = "raw pixels"
"""Name of the baseline without an encoder."""
RANDOM = "random encoder"
"""Name of the baseline without training."""
SCHEMA = 1
"""Form of the file; raised when an older reader would misread a newer file."""
_FILE = "sweep.json"
_FREE = ("data", "hardware", "monitoring")  # what a run computes with; its images are told by their fingerprint


@dataclass(frozen=True)
class SweepRow:
    """What was measured of one run, or of a baseline."""

    key: str
    """Hash of all settings that the numbers depend on, and of the images."""

    encoder: str
    """The recipe, "raw pixels" or "random encoder"."""

    label: str
    """The value of what is varied; of a baseline the first value whose evaluation sees images as it does."""

    number: float | None
    """The value along an axis, where it is one."""

    seed: int
    """Seed of the run, or of the random encoder."""

    accuracy: Mapping[str, float]
    """First measure of each protocol on the test images, in percent."""

    i_nce: float | None = None
    """I_NCE on the held-out images, mean over the branches, in nats; none for baselines."""

    i_nce_deviation: float | None = None
    """Standard deviation of that over the draws of views and negatives."""

    branches: tuple[Mapping[str, Any], ...] = ()
    """I_NCE of every branch, with its pairs and all draws."""

    bound: float | None = None
    """log(K + 1), in nats."""

    loss: float | None = None
    """Loss of the last epoch."""

    seconds: float | None = None
    """Time of the training."""


def of_run(found: Sequence[BranchInformation]) -> dict[str, Any]:
    """What the branches of a run share, as fields of a row."""
    draws = list(zip(*(branch.estimates for branch in found), strict=True))
    mean = BranchInformation(0, "", tuple(sum(draw) / len(draw) for draw in draws), found[0].negatives, found[0].images)
    return {
        "i_nce": mean.nats,
        "i_nce_deviation": mean.deviation,
        "branches": tuple({**asdict(branch), "estimates": list(branch.estimates)} for branch in found),
        "bound": mean.bound,
    }


def digest(*facts: Any) -> str:
    """16 hexadecimal digits that depend on all facts: plain data, and runs without what they compute with."""

    def plain(fact: Any) -> Any:
        return {k: v for k, v in encode(fact).items() if k not in _FREE} if isinstance(fact, Run) else fact

    return hash_of([json.dumps([plain(fact) for fact in facts], sort_keys=True).encode()])[:16]


class Kept:
    """The rows of a sweep in its folder, written after each."""

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        """`about` says which sweep it is; raises `UserError` where the folder holds another, or a damaged one."""
        self.path, self.about = folder / _FILE, json.loads(json.dumps(about))
        self.rows: dict[str, SweepRow] = {}
        if self.path.exists():
            self._read()
        elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} is no folder of a sweep and not empty: name another, or one that does not exist")

    def add(self, row: SweepRow) -> None:
        """Keep one more row, on the disk too."""
        self.rows[row.key] = row
        self.write()

    def write(self) -> None:
        """Write what there is, so that the folder is that of this sweep."""
        write_json(self.path, {"schema": SCHEMA, **self.about, "rows": [asdict(each) for each in self.rows.values()]})

    def _read(self) -> None:
        try:
            held = json.loads(self.path.read_text())
            rows = held.pop("rows")
            schema = held.pop("schema")
            known = {field.name for field in fields(SweepRow)}
            found = [SweepRow(**{**row, "branches": tuple(row["branches"])}) for row in rows if set(row) == known]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
            raise UserError(f"{self.path} is damaged ({problem}): name another folder") from problem
        if schema != SCHEMA or len(found) < len(rows):
            raise UserError(f"{self.path} was written by another version: name another folder")
        if different := _differences(held, self.about):
            path, before, after = different[0]
            more = f", and {len(different) - 1} more differ" if len(different) > 1 else ""
            raise UserError(
                f"{self.path.parent} holds another sweep: {path} is {before!r} there, {after!r} was asked{more}; name"
                " another folder"
            )
        self.rows = {row.key: row for row in found}


def _differences(before: Any, after: Any, path: str = "") -> list[tuple[str, Any, Any]]:
    """Where two plain values differ."""
    if isinstance(before, dict) and isinstance(after, dict):
        names = dict.fromkeys([*before, *after])
        pairs = [(name, before.get(name), after.get(name)) for name in names]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(str(n), a, b) for n, (a, b) in enumerate(zip(before, after, strict=True))]
    else:
        return [] if before == after else [(path, before, after)]
    return [found for name, a, b in pairs for found in _differences(a, b, f"{path}.{name}" if path else name)]
