"""What came out of an evaluation, and the file that keeps it."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.measures.accuracy import TOP1, TOP5, Accuracy
from vantage.storage.cache import hash_of
from vantage.storage.files import write_result

__all__ = ["Outcome", "Result", "current_settings", "keep", "path_of", "recorded"]

_RENAMED = {
    "batch": "batch_size",
    "rate": "learning_rate",
    "rates": "learning_rates",
    "falls": "milestones",
    "backbone_rate": "backbone_learning_rate",
    "head_rate": "head_learning_rate",
    "head_rates": "head_learning_rates",
}
"""Settings of protocols by the names that earlier versions recorded them under."""
_UNCHANGED = ("detection", "detection-c4", "instances", "instances-c4", "keypoints")
"""Protocols that kept the names of all their settings."""


@dataclass(frozen=True)
class Outcome:
    """What a protocol found out about one encoder."""

    measures: Mapping[str, float]
    """What was measured on the test images, the one to be quoted first; in percent, unless a name tells another unit
    in brackets."""

    train_images: int
    """Labeled training images used."""

    test_images: int
    """Labeled test images used."""

    chosen: Mapping[str, float | int | str | list[float]]
    """What was chosen on images held out of the training set, and what it was chosen by."""

    details: Mapping[str, Any] = field(default_factory=dict)
    """Numbers behind the measures, such as the precision of every class: plain data, kept in the record."""

    how: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else shaped the measures and is none of the protocol's settings: numbers that it fixes, those that it
    derived from its settings, and how crops were drawn. Plain data, kept in the record."""

    @property
    def accuracy(self) -> Accuracy:
        """The measures of a protocol that names one class for each image; raises `UserError` for others."""
        if TOP1 not in self.measures:
            raise UserError(f"this protocol measures {', '.join(self.measures)}, not how often a class is right")
        return Accuracy(self.measures[TOP1], self.measures.get(TOP5))


@dataclass(frozen=True)
class Result:
    """All that is needed to understand an accuracy, and to obtain it again."""

    protocol: str
    """Name of the protocol."""
    version: int
    """Version of the protocol's meaning."""
    settings: dict[str, Any]
    """Every setting of the protocol."""
    outcomes: dict[str, Outcome]
    """What came out, by encoder: the recipe's name first, then "raw pixels" and "random encoder" where they were
    asked for."""
    test_split: str
    """Where the test images come from."""
    view: str
    """How images are seen."""
    checkpoint: str
    """Name of the checkpoint."""
    encoder: str
    """Hash of the backbone."""
    train: str
    """Fingerprint of the training images."""
    test: str
    """Fingerprint of the test images."""
    device: str
    """Kind of device."""
    resident_bytes: int
    """Bytes up to which training images may lie in memory, where their crops are drawn otherwise than when they are
    streamed; which of both it was is told with each outcome (`Outcome.how`)."""
    libraries: dict[str, str]
    """Versions."""

    def lines(self) -> list[str]:
        """The measures in words, a line for each encoder."""
        return [f"{name}: {_words(outcome)}" for name, outcome in self.outcomes.items()]

    @property
    def facts(self) -> dict[str, Any]:
        """All that decides an outcome, as plain data."""
        return _facts(asdict(self))

    @property
    def file_name(self) -> str:
        """A name that depends on all that the result depends on, but not on what came out."""
        same = {key: value for key, value in asdict(self).items() if key not in ("outcomes", "libraries")}
        key = hash_of([json.dumps([same, sorted(self.outcomes)], sort_keys=True).encode()])
        return f"{self.protocol}-v{self.version}-{self.checkpoint}-{key[:8]}.json"


def path_of(result: Result, run_folder: Path, out: Path | None = None) -> Path:
    """The file that a result is kept in."""
    return out or run_folder / "evaluations" / result.file_name


def keep(result: Result, path: Path) -> Result:
    """Write a result as JSON; the same evaluation replaces its file."""
    write_result(path, json.dumps(asdict(result), indent=1), "the result")
    return result


def recorded(paths: Iterable[Path], encoder: str, like: Result) -> Outcome | None:
    """The outcome of an encoder, by its name, in the first of the files that holds the same evaluation as `like`, whose
    own outcomes do not count."""
    facts = like.facts
    for path in paths:
        try:
            record = json.loads(path.read_text())
            if _facts(record) == facts and encoder in record["outcomes"]:
                return Outcome(**record["outcomes"][encoder])
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue  # no record of ours
    return None


def current_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recorded result, by the names that they have now."""
    settings: dict[str, Any] = dict(record["settings"])
    renamed = {} if record["protocol"] in _UNCHANGED else _RENAMED
    return {renamed.get(name, name): value for name, value in settings.items()}


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in record.items() if key != "outcomes"}
    view = re.sub(r"\bEvaluation\(", "EvaluationView(", record["view"]).replace("(seen=", "(base=")  # earlier names
    return json.loads(json.dumps(plain | {"settings": current_settings(record), "view": view}))


def _words(outcome: Outcome) -> str:
    told = ", ".join(_measure(name, value) for name, value in outcome.measures.items())
    return f"{told} of {outcome.test_images} test images"


def _measure(name: str, value: float) -> str:
    """A number beside a number is parted from it, as in: precision at 10: 28.40 %."""
    between = ": " if name[-1].isdigit() and (" " in name or "=" in name) else " "
    return f"{name}{between}{value:.2f}{'' if '(' in name else ' %'}"
