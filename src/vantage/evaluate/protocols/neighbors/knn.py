"""Nearest neighbors in the training set vote for the class of a test image.

n: training images   q: test images   d: width of the features   c: classes   t: guesses an image   k: neighbors
b: test images at once

Similarities are computed for a bounded table of test by training images at a time, whatever the sizes.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.labeled import LabeledFeatures, check_classes, labeled, with_labels
from vantage.evaluate.outcome import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.accuracy import accuracy, best_classes

__all__ = ["KNN", "NearestNeighbor"]

_QUERIES, _BANK = 192, 50_000
"""Rows and columns of the table of similarities that is held at a time: 37 MiB."""


@dataclass(frozen=True)
class KNN:
    """The k nearest training images vote with weight exp(cosine / temperature) (instance discrimination, arXiv
    1805.01978, §3.4).

    The paper's values are k = 200 and temperature .07; its CIFAR-10 code has .1. Nothing is chosen by looking at
    test labels. Raises `UserError` where the training set holds fewer than k labeled images.
    """

    name: ClassVar[str] = "knn"
    version: ClassVar[int] = 1

    k: int = 200
    """How many neighbors vote."""

    temperature: float = 0.07
    """Divides the cosine in a vote's weight: the lower, the more the nearest count."""

    def __post_init__(self) -> None:
        if self.k < 1 or not 0 < self.temperature < math.inf:
            raise UserError(
                f"kNN: k is {self.k} and temperature {self.temperature}; k must be 1 or more, temperature above 0"
            )

    def __call__(self, trained: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Accuracy on the test images of features looked up among the training images."""
        self._check(len(_checked(train, test, work)))
        known, asked = labeled(trained, train, work), labeled(trained, test, work)
        guess = self.predict(known.vector, known.label, asked.vector, _classes(known, asked))
        return Outcome(accuracy(guess, asked.label, _classes(known, asked)).measures(), known.count, asked.count, {})

    def predict(
        self, bank: Float[Tensor, "n d"], label: Int[Tensor, "n"], query: Float[Tensor, "q d"], classes: int
    ) -> Int[Tensor, "q t"]:
        """The five classes with most votes (fewer where there are fewer), best first. Features may have any length."""
        self._check(len(bank))
        guesses = []
        for cosine, near in nearest(bank, query, self.k):
            # Less the largest, so that a low temperature cannot overflow; never 0, so that who votes can be told.
            weight = ((cosine - cosine[:, :1]) / self.temperature).exp_().clamp_min_(1e-30)
            votes = weight.new_zeros(len(near), classes).scatter_add_(1, label[near], weight)
            guess = best_classes(votes)
            guesses.append(guess.masked_fill(votes.gather(1, guess) == 0, -1))
        return torch.cat(guesses) if guesses else label.new_empty(0, min(5, classes))

    def _check(self, images: int) -> None:
        if images < self.k:
            raise UserError(
                f"kNN with k = {self.k} needs as many labeled training images, but there are {images}:"
                f" choose k of at most {images} (--k {images})"
            )


@dataclass(frozen=True)
class NearestNeighbor:
    """The nearest training image names the class, as Ring (arXiv 2010.02037) and local aggregation report it.

    They look the image up in the memory bank, whose rows are averages of the network's features while it learned; here
    the network that is judged sees the training images anew, so that any run can be judged, with a bank or without.
    With one neighbor there is one guess, so there is no top-5.
    """

    name: ClassVar[str] = "nearest-neighbor"
    version: ClassVar[int] = 1

    def __call__(self, trained: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Accuracy on the test images of features looked up among the training images."""
        _checked(train, test, work)
        known, asked = labeled(trained, train, work), labeled(trained, test, work)
        guess = self.predict(known.vector, known.label, asked.vector)
        share = accuracy(guess[:, None], asked.label, _classes(known, asked))
        return Outcome(share.measures(), known.count, asked.count, {})

    def predict(
        self, bank: Float[Tensor, "n d"], label: Int[Tensor, "n"], query: Float[Tensor, "q d"]
    ) -> Int[Tensor, "q"]:
        """Label of the training image of highest cosine."""
        found = [label[near[:, 0]] for _, near in nearest(bank, query, 1)]
        return torch.cat(found) if found else label.new_empty(0)


def nearest(
    bank: Float[Tensor, "n d"], query: Float[Tensor, "q d"], k: int
) -> Iterator[tuple[Float[Tensor, "b k"], Int[Tensor, "b k"]]]:
    """Cosines and numbers of the k nearest rows of the bank, nearest first, for some queries after the others.

    Neither argument is copied: the table of similarities is scaled instead.
    """
    columns = max(_BANK, k)
    table = bank.new_empty(min(_QUERIES, len(query)) * min(columns, len(bank)))
    scale = _inverse_length(bank)
    for start in range(0, len(query), _QUERIES):
        rows = torch.nn.functional.normalize(query[start : start + _QUERIES], dim=1)
        best: tuple[Tensor, Tensor] | None = None
        for first in range(0, len(bank), columns):
            part = bank[first : first + columns]
            cosine = table[: len(rows) * len(part)].view(len(rows), len(part))
            torch.mm(rows, part.T, out=cosine)
            if scale is not None:
                cosine.mul_(scale[first : first + columns])
            value, number = cosine.topk(min(k, len(part)), dim=1)
            best = _joined(best, value, number.add_(first), k)
        assert best is not None
        yield best


def _joined(
    best: tuple[Tensor, Tensor] | None, value: Float[Tensor, "b j"], number: Int[Tensor, "b j"], k: int
) -> tuple[Tensor, Tensor]:
    """The k best of what was found before and now."""
    if best is None:
        return value, number
    value, number = torch.cat([best[0], value], 1), torch.cat([best[1], number], 1)
    value, order = value.topk(min(k, value.shape[1]), dim=1)
    return value, number.gather(1, order)


def _inverse_length(bank: Float[Tensor, "n d"]) -> Float[Tensor, "n"] | None:
    """One over each row's length, or none where all rows have unit length and scaling would only cost time."""
    length = torch.cat([torch.linalg.vector_norm(part, dim=1) for part in bank.split(4096)])
    if bool(((length - 1).abs() < 1e-6).all()):
        return None
    return length.clamp_min(1e-12).reciprocal()


def _classes(known: LabeledFeatures, asked: LabeledFeatures) -> int:
    return max(known.classes, asked.classes)


def _checked(train: Source, test: Source, work: Work) -> Int[Tensor, "n"]:
    """Labels of the training images; sets that cannot be judged are refused before an image is looked at."""
    label = with_labels(train)[1]
    check_classes(label, with_labels(test)[1], test.classes, work.progress)
    return label
