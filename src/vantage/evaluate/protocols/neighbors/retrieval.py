"""Retrieval: which training images are nearest to a test image, and how many of them are of its class.

n: training images   q: test images   d: width of the features   k: neighbors
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.data.sources.source import Source, distinct_classes, labels_of
from vantage.data.splits import LabeledSplit
from vantage.encoding import Work
from vantage.errors import UserError, quantity
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.labeled_features import finite_features
from vantage.measures.neighbors import nearest
from vantage.processes.sharing import gather_rows, own_slice

__all__ = ["NearestRows", "Retrieval", "neighbors"]


class NearestRows(NamedTuple):
    """The nearest training images of some test images."""

    number: Int[Tensor, "q k"]
    """Numbers of the training images, nearest first."""

    cosine: Float[Tensor, "q k"]
    """Their cosines with the test image."""

    right: Bool[Tensor, "q k"] | None
    """Whether they are of the test image's class; None if either set has no labels."""


@dataclass(frozen=True)
class Retrieval:
    """Precision at k: the share of the k nearest training images that are of a test image's class.

    Nearness is the cosine of features; the result is the mean over all test images. No classifier is trained, and all
    neighbors weigh the same. The precision of every class is among the details. Raises `UserError` for a training set
    with fewer than k labeled images.
    """

    name: ClassVar[str] = "retrieval"
    version: ClassVar[int] = 1

    k: int = 10
    """How many neighbors count."""

    def __post_init__(self) -> None:
        if self.k < 1:
            raise UserError(f"retrieval: k is {self.k}; it must be 1 or more")

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Look every test image up among the training images."""
        train, label, test, test_label = LabeledSplit.of(train, test, work.progress)
        right = neighbors(encoder, train, test, self.k, work).right
        assert right is not None
        precision = 100.0 * right.double().mean(1)
        measures = {f"precision at {self.k}": float(precision.mean())}
        if self.k > 1:
            measures["precision at 1"] = 100.0 * float(right[:, 0].double().mean())
        by_class = _by_class(precision, test_label, distinct_classes(test))
        details: dict[str, Any] = {f"precision at {self.k} by class": by_class}
        return Outcome(measures, len(label), len(test_label), {}, details)


def neighbors(encoder: FrozenEncoder, train: Source, test: Source, k: int, work: Work) -> NearestRows:
    """The k nearest training images of every test image. Labels are not needed.

    Features are cached. Raises `UserError` for fewer than k training images or no test images.
    """
    if len(train) < k:
        raise UserError(
            f"retrieval: k is {k}, but only {quantity(len(train), 'image')} can be searched; choose a smaller k (--k)"
        )
    if not len(test):
        raise UserError("retrieval: there is no image to look up; give a test set with images")
    device = work.resolved_device()
    bank, query = (finite_features(encoder, source, work).to(device) for source in (train, test))
    parts = [(bank.new_empty(0, k), torch.empty(0, k, dtype=torch.int64, device=bank.device))]
    parts += nearest(bank, query[own_slice(len(query))], k)
    cosine, number = (gather_rows(torch.cat([part[index] for part in parts]), len(query)).cpu() for index in (0, 1))
    label, test_label = labels_of(train), labels_of(test)
    right = None
    if bool((label >= 0).any()) and bool((test_label >= 0).any()):
        right = (label[number] == test_label[:, None]) & (test_label >= 0)[:, None]
    return NearestRows(number, cosine, right)


def _by_class(precision: Float[Tensor, "q"], label: Int[Tensor, "q"], classes: tuple[str, ...]) -> dict[str, float]:
    """Mean precision of the test images of each class, by its name."""
    return {
        classes[number] if number < len(classes) else str(number): float(precision[label == number].mean())
        for number in label.unique().tolist()
    }
