"""The result of an evaluation, and the file that holds it."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from vantage.errors import UserError, quantity
from vantage.facts.results import current_settings, with_current_names
from vantage.frozen.outside import home_of
from vantage.measures.accuracy import TOP1, TOP5, Accuracy
from vantage.processes.sharing import by_first
from vantage.storage.cache import hash_of
from vantage.storage.files import write_result

__all__ = ["Outcome", "Result", "save", "checked", "path_of", "find_outcome"]


@dataclass(frozen=True)
class Outcome:
    """What a protocol measured of one encoder."""

    measures: Mapping[str, float]
    """Measures on the test images, the most important one first; in percent, unless a name gives another unit in
    parentheses."""

    train_images: int
    """Labeled training images used."""

    test_images: int
    """Labeled test images used."""

    chosen: Mapping[str, float | int | str | list[float]]
    """Values that were chosen on images held out of the training set, and the criterion."""

    details: Mapping[str, Any] = field(default_factory=dict)
    """Numbers behind the measures, such as the precision of every class: plain data, stored in the record."""

    how: Mapping[str, Any] = field(default_factory=dict)
    """Whatever else affects the measures but is not a setting: numbers that the protocol fixes or derives from its
    settings, and how crops were drawn. Plain data, stored in the record."""

    @property
    def accuracy(self) -> Accuracy:
        """Accuracy by a protocol that predicts one class for each image; raises `UserError` for other protocols."""
        if TOP1 not in self.measures:
            raise UserError(f"this protocol measures {', '.join(self.measures)}, not accuracy")
        return Accuracy(self.measures[TOP1], self.measures.get(TOP5))


@dataclass(frozen=True)
class Result:
    """Everything needed to understand an evaluation, and to repeat it."""

    protocol: str
    """Name of the protocol."""
    version: int
    """Version of the protocol's meaning."""
    settings: dict[str, Any]
    """Every setting of the protocol."""
    outcomes: dict[str, Outcome]
    """Outcomes by encoder: under the recipe's name first, then under "raw pixels" and "random encoder" if baselines
    were evaluated."""
    test_split: str
    """Where the test images come from."""
    view: str
    """The view through which the encoder sees images."""
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
    """Largest size in bytes of training images that are held in memory rather than streamed. The two draw different
    crops from the same seed; `Outcome.how` records which it was."""
    libraries: dict[str, str]
    """Versions of Python and of libraries."""
    files: str = ""
    """Hash of the sizes and modification times of all files of both sets, of which fingerprints read only some. Empty
    in records of earlier versions, which count for any."""
    code: str = ""
    """Hash of the code of a user's own protocol."""

    def lines(self) -> list[str]:
        """The measures in words, one line for each encoder."""
        return [f"{name}: {_words(outcome)}" for name, outcome in self.outcomes.items()]

    @property
    def facts(self) -> dict[str, Any]:
        """Everything that determines an outcome, as plain data."""
        return _facts(asdict(self))

    @property
    def file_name(self) -> str:
        """A name that depends on everything that determines the result except the versions of libraries, and files
        that were changed."""
        without = ("outcomes", "libraries", "files", *(() if self.code else ("code",)))
        plain = {key: value for key, value in asdict(self).items() if key not in without}
        key = hash_of([json.dumps([plain, sorted(self.outcomes)], sort_keys=True)])
        return f"{self.protocol}-v{self.version}-{self.checkpoint}-{key[:8]}.json"


def checked(outcome: Any, protocol: str) -> Outcome:
    """What a protocol returned, with plain numbers in place of those of numpy and torch. Raises `UserError` if it is no
    `Outcome`, measures nothing, or holds what cannot be saved."""
    if not isinstance(outcome, Outcome):
        raise UserError(f"{protocol} returns a {type(outcome).__name__}: return a vantage.evaluate.Outcome")
    values = {f.name: _plain(getattr(outcome, f.name)) for f in fields(outcome)}
    measures = values["measures"]
    if not measures or not all(isinstance(value, int | float) for value in measures.values()):
        raise UserError(f"{protocol} measures {measures}: give at least one measure, and a number for each")
    try:
        json.dumps(values)
    except (TypeError, ValueError) as problem:
        raise UserError(
            f"the outcome of {protocol} cannot be saved ({problem}): give numbers, text, lists and dicts of them"
        ) from problem
    return Outcome(**values)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return value.tolist() if hasattr(value, "tolist") else value


def path_of(result: Result, run_folder: Path, out: Path | None = None) -> Path:
    """The file that a result is written to."""
    return out or home_of(run_folder) / "evaluations" / result.file_name


def save(result: Result, path: Path) -> Result:
    """Write a result as JSON, by the first process; repeating an evaluation overwrites its file."""
    by_first(lambda: write_result(path, json.dumps(asdict(result), indent=1), "the result"))
    return result


def find_outcome(paths: Iterable[Path], encoder: str, like: Result) -> Outcome | None:
    """The outcome under the name `encoder` in the first file that records the same evaluation as `like`; the
    outcomes of `like` do not matter."""
    facts = like.facts
    for path in paths:
        try:
            record = {"code": "", "files": like.files} | json.loads(path.read_text())
            if _facts(record) == facts and encoder in record["outcomes"]:
                recorded = record["outcomes"][encoder]
                named = {name: with_current_names(recorded[name]) for name in ("chosen", "details") if name in recorded}
                return checked(Outcome(**recorded | named), like.protocol)
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            continue  # not a record of an evaluation
    return None


def _facts(record: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in record.items() if key != "outcomes"}
    view = re.sub(r"\bEvaluation\(", "EvaluationView(", record["view"]).replace("(seen=", "(base=")  # earlier names
    return json.loads(json.dumps(plain | {"settings": current_settings(record), "view": view}))


def _words(outcome: Outcome) -> str:
    measures = ", ".join(_measure(name, value) for name, value in outcome.measures.items())
    return f"{measures} of {quantity(outcome.test_images, 'test image')}"


def _measure(name: str, value: float) -> str:
    """A measure with its value; a colon keeps two numbers apart, as in precision at 10: 28.40 %."""
    between = ": " if name[-1].isdigit() and (" " in name or "=" in name) else " "
    return f"{name}{between}{value:.2f}{'' if '(' in name else ' %'}"
