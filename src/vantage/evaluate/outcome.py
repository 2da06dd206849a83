"""What a protocol is, and what it hands back."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from vantage.data.source import Source
from vantage.embedding import Work
from vantage.evaluate.accuracy import Accuracy
from vantage.trained import Trained

__all__ = ["EvaluationProtocol", "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What a protocol found out about one encoder."""

    accuracy: Accuracy
    """On the test images."""

    train_images: int
    """Labelled training images used."""

    test_images: int
    """Labelled test images used."""

    chosen: Mapping[str, float | int | str | list[float]]
    """What was chosen on images held out of the training set, and what it was chosen by."""


@runtime_checkable
class EvaluationProtocol(Protocol):
    """A frozen way to judge an encoder. Its fields are all of its settings; a changed meaning gets a new version."""

    name: ClassVar[str]
    version: ClassVar[int]

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Judge an encoder, fitting on `train` and looking at the labels of `test` only to count what is right."""
        ...
