"""Parts by their public names, as in settings, checkpoints and on the command line.

The public name of a part is its class name, as exported by `vantage` or by one of the packages in `STUDIES`. Parts of
other packages are named `module:Name`. If a part or field is renamed, it gets an entry here, so that earlier runs can
still be read.
"""

import importlib
import re
from functools import cache
from typing import Any

from vantage.errors import UserError

__all__ = [
    "RENAMED_FIELDS",
    "RENAMED_PARTS",
    "RENAMED_TENSORS",
    "external_part",
    "is_built_in",
    "is_part",
    "name_of",
    "part_named",
    "public_name",
]

STUDIES = (
    "vantage.evaluate",
    "vantage.evaluate.protocols.detection",
    "vantage.studies.view_learning",
    "vantage.studies.moving_mnist",
    "vantage.studies.sweep",
)
"""Packages with parts that `vantage` itself does not export."""

RENAMED_PARTS = {
    "ColourJitter": "ColorJitter",
    "Contrast": {"vantage.studies.moving_mnist.contrast": "ClipContrast"},
    "Contrasted": "ContrastiveRow",
    "Course": {"vantage.studies.moving_mnist.course": "ClipTraining"},
    "EndToEnd": "SupervisedRow",
    "Evaluation": "EvaluationView",
    "Flip": "HorizontalFlip",
    "Learned": "LearnedSpace",
    "Linear": {"vantage.encoders.heads": "LinearHead", "vantage.encoders": "LinearHead"},
    "MeanNeighbours": "MeanNeighbors",
    "Measured": "RowMeasures",
    "Neighbours": "Neighbors",
    "Normalise": "Normalize",
    "NormalisedMLP": "NormalizedMLP",
    "Point": "SweepPoint",
    "Resized": "ResizeResult",
    "Shared": {"vantage.studies.moving_mnist.shared": "SharedFactors"},
    "SoftNeighbours": "SoftNeighbors",
    "Stock": "ImageSet",
    "Supervised": "SupervisedTraining",
    "SyncBatchNorm": "BatchNorm",
    "Together": {"vantage.studies.view_learning.learning": "Jointly", "vantage.studies.view_learning": "Jointly"},
    "Untrained": "UntrainedRow",
}
"""Current names of parts by their former names. An entry by module renames only the part of that module."""

RENAMED_FIELDS: dict[str, dict[str, str | None]] = {
    "AdamW": {"first_moment": "beta1", "second_moment": "beta2", "epsilon": "eps", "spare": "exclude"},
    "ClipTraining": {"batch": "batch_size", "rate": "learning_rate"},
    "CosineByEpoch": {"peak": "base"},
    "CosineByStep": {"peak": "base"},
    "Data": {"place": "path", "workers": "num_workers", "images": "max_images"},
    "Encoder": {"normalisation": "normalization"},
    "InfoMinTable4": {"seeds": "repetitions"},
    "LARS": {"trust": "trust_coefficient", "spare": "exclude"},
    "MeanAggregation": {"near": None},
    "OptimalToy": {"seeds": "repetitions"},
    "Run": {"rate": "learning_rate", "batch": "batch_size"},
    "SGD": {"spare": "exclude"},
    "Scores": {"all_kept": "keeps_all"},
    "Shard": {"own": "local"},
    "StepDecay": {"peak": "base", "at_epochs": "milestones"},
    "TrainedToy": {"batch": "batch_size", "seeds": "repetitions"},
    "ViewLearning": {
        "batch": "batch_size",
        "labeled_batch": "labeled_batch_size",
        "labelled_batch": "labeled_batch_size",
        "rates": "learning_rates",
    },
}
"""Current names of fields by their former names, for each part's current name; `None` for a field that was removed."""

RENAMED_TENSORS = {"log_normaliser": "log_normalizer", "told": "updates"}
"""Current names of parameters and buffers by their former names, each only the last part of the name."""

_OWN = re.compile(r"(?P<module>[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*):(?P<name>[A-Za-z_]\w*)")


def is_part(kind: Any) -> bool:
    """Whether this is the class of a part, that is, a frozen dataclass. A plain subclass of one does not count."""
    parameters = getattr(kind, "__dict__", {}).get("__dataclass_params__")
    return isinstance(kind, type) and parameters is not None and parameters.frozen


def is_built_in(kind: type) -> bool:
    """Whether Vantage defines a class, and neither a user nor another package."""
    return kind.__module__.partition(".")[0] == "vantage"


@cache
def part_named(name: str) -> type | None:
    """The part of Vantage with this public name, if there is one."""
    for room in ("vantage", *STUDIES):
        module = importlib.import_module(room)
        # Asked for what it does not have, `vantage` looks for a similar name, which takes ten times as long.
        kind = getattr(module, name) if name in module.__all__ else None
        if isinstance(kind, type) and is_part(kind) and kind.__name__ == name:
            return kind
    return None


def name_of(kind: type) -> str:
    """The name of a part in settings: its public name, or `module:Name` for a part of another package.

    Raises `UserError` for a part that could not be found again by that name.
    """
    if not is_part(kind) or "<" in kind.__qualname__ or "." in kind.__qualname__:
        raise UserError(f"{kind.__qualname__} cannot be saved; make it a frozen dataclass at the top of its module")
    if not is_built_in(kind):
        return f"{kind.__module__}:{kind.__name__}"
    if part_named(kind.__name__) is not kind:
        raise UserError(
            f"{kind.__name__} cannot be saved: it is not a public part; list it in the __init__ of its package"
        )
    return kind.__name__


def public_name(name: str) -> str:
    """The current name for a name in settings: `Queue`, or `vantage.memory.queue:Queue` as in earlier versions."""
    module, _, own = name.rpartition(":")
    present = RENAMED_PARTS.get(own, own)
    return present if isinstance(present, str) else present.get(module, own)


def external_part(name: str) -> tuple[str, str] | None:
    """Module and name of `module:Name`; `None` for other text."""
    match = _OWN.fullmatch(name)
    return None if match is None else (match["module"], match["name"])
