"""What a protocol is, and what it hands back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.accuracy import TOP1, TOP5, Accuracy

__all__ = ["EvaluationProtocol", "Outcome"]


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


@runtime_checkable
class EvaluationProtocol(Protocol):
    """A frozen way to judge an encoder. Its fields are all of its settings; what else shapes its numbers is told in
    `Outcome.how`. A changed meaning gets a new version."""

    name: ClassVar[str]
    version: ClassVar[int]

    def __call__(self, trained: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Judge an encoder, fitting on `train` and looking at the labels of `test` only to count what is right."""
        ...
