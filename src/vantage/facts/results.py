"""The labeled results that a run's folder records, and those of the baselines."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vantage.measures.accuracy import error_of_difference

__all__ = [
    "BASELINES",
    "RANDOM_ENCODER",
    "RAW_PIXELS",
    "LabeledResult",
    "as_good",
    "current_settings",
    "recorded_results",
    "with_current_names",
]

RAW_PIXELS, RANDOM_ENCODER = "raw pixels", "random encoder"
"""What results call the two baselines."""
BASELINES = (RAW_PIXELS, RANDOM_ENCODER)
"""Names of the baselines in records."""

_CHANCE = 5.0
"""Points of accuracy by which two equally good networks may differ on enough test images."""

_NEW_NAMES = {
    "batch": "batch_size",
    "rate": "learning_rate",
    "rates": "learning_rates",
    "falls": "milestones",
    "backbone_rate": "backbone_learning_rate",
    "head_rate": "head_learning_rate",
    "head_rates": "head_learning_rates",
    "rate of each depth": "learning rate of each depth",
    "held_out_accuracy by depth and rate": "held_out_accuracy by depth and learning rate",
}
"""Names of settings, choices and details in the records of earlier versions, with their present names."""


@dataclass(frozen=True)
class LabeledResult:
    """One protocol on one checkpoint, and on the baselines as far as they were evaluated in the same way."""

    protocol: str
    """Name of the protocol."""
    settings: str
    """Its settings, as `name value` pairs."""
    measure: str
    """Its most important measure; in percent, unless the name gives another unit in parentheses."""
    value: float
    """The run's value."""
    baselines: Mapping[str, float]
    """The values of the baselines, by name."""
    checkpoint: str
    """The checkpoint that was evaluated."""
    test_images: int
    """Labeled test images."""
    version: int
    """Version of the protocol; results of different versions cannot be compared."""
    encoder: str
    """Digest of the backbone that was evaluated (`FrozenEncoder.digest`)."""

    @property
    def title(self) -> str:
        """The protocol with its measure."""
        return f"{self.protocol}, {self.measure}"


def recorded_results(folder: Path) -> list[LabeledResult]:
    """The results in a run's evaluations, by protocol and checkpoint. Files that are not records are skipped."""
    records = [
        record for record in map(_read_record, sorted((folder / "evaluations").glob("*.json"))) if record is not None
    ]
    baselines: dict[str, dict[str, float]] = {}
    for record in records:
        values = {name: next(iter(one["measures"].values())) for name, one in record["outcomes"].items()}
        own = {name: value for name, value in values.items() if name in BASELINES}
        baselines.setdefault(_key(record), {}).update(own)
    results = [result for record in records for result in _results(record, baselines[_key(record)])]
    return sorted(results, key=lambda result: (result.protocol, result.settings, result.checkpoint))


def as_good(results: list[LabeledResult], checkpoint: str) -> list[str]:
    """The results of this checkpoint in which a baseline is as good as the run, in words. Results count on so many test
    images that chance is less than `_CHANCE` points, or if the baseline leads by more than chance."""
    lines = []
    for result in results:
        if result.checkpoint != checkpoint or "(" in result.measure:  # percentages only: higher is better
            continue
        for name, value in result.baselines.items():
            chance = 2 * error_of_difference(value, result.value, result.test_images)
            if value >= result.value and (chance <= _CHANCE or value - result.value > chance):
                numbers = f"{result.value:.1f}, {name} {value:.1f}"
                lines.append(f"{result.title} on {result.test_images:,} test images (the run {numbers})")
                break
    return lines


def current_settings(record: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a recorded result, under their present names."""
    return with_current_names(record["settings"])


def with_current_names(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """Recorded settings, choices or details under their present names."""
    return {_NEW_NAMES.get(name, name): value for name, value in dict(recorded).items()}


def _results(record: dict[str, Any], baselines: Mapping[str, float]) -> Iterator[LabeledResult]:
    words = ", ".join(f"{name} {value}" for name, value in current_settings(record).items())
    for name, outcome in record["outcomes"].items():
        if name not in BASELINES:
            measure, value = next(iter(outcome["measures"].items()))
            own = (record["protocol"], words, measure, value, baselines)
            facts = (record["checkpoint"], outcome["test_images"], record["version"], record["encoder"])
            yield LabeledResult(*own, *facts)


def _key(record: dict[str, Any]) -> str:
    """What must agree for two records to be comparable."""
    names = ("protocol", "version", "train", "test", "test_split", "view")
    return json.dumps([*(record.get(name) for name in names), current_settings(record)], sort_keys=True)


def _read_record(path: Path) -> dict[str, Any] | None:
    """A record of an evaluation, or None for any other file."""
    try:
        record = json.loads(path.read_text())
        return record if _is_record(record) else None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None


def _is_record(record: Any) -> bool:
    """Whether this is a record of an evaluation; other JSON values may raise an error instead."""
    kinds = {"protocol": str, "settings": dict, "version": int, "checkpoint": str, "encoder": str}
    return all(isinstance(record[name], kind) for name, kind in kinds.items()) and all(
        outcome["measures"]
        and all(map(_is_number, outcome["measures"].values()))
        and isinstance(outcome["test_images"], int)
        for outcome in record["outcomes"].values()
    )


def _is_number(value: Any) -> bool:
    """Whether this is a number that can be shown: an integer in JSON may be larger than any float."""
    return isinstance(value, float) or isinstance(value, int) and abs(value) < 1 << 63
