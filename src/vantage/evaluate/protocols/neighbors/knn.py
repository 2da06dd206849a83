"""Nearest neighbors in the training set vote for the class of a test image.

n: training images   q: test images   d: width of the features   t: guesses per image
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.data.splits import LabeledSplit
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.labeled_features import labeled_features
from vantage.measures.accuracy import accuracy
from vantage.measures.neighbors import nearest, vote
from vantage.processes.sharing import gather_rows, own_slice

__all__ = ["KNN", "NearestNeighbor"]


@dataclass(frozen=True)
class KNN:
    """The k nearest training images vote on the class (instance discrimination, arXiv 1805.01978, §3.4).

    The weight of a vote is exp(cosine / temperature). The paper's values are k = 200 and temperature .07; its code for
    CIFAR-10 uses .1. The paper compares the 128 outputs of the head; here the backbone's features are compared, since
    these are what remains of a run, so the numbers differ. Nothing is chosen by test labels. Raises `UserError` for a
    training set with fewer than k labeled images.
    """

    name: ClassVar[str] = "knn"
    version: ClassVar[int] = 1

    k: int = 200
    """How many neighbors vote."""

    temperature: float = 0.07
    """Divides the cosine in the weight of a vote: the lower, the more the nearest neighbors count."""

    def __post_init__(self) -> None:
        if self.k < 1 or not 0 < self.temperature < math.inf:
            raise UserError(
                f"kNN: k is {self.k} and temperature is {self.temperature}; k must be 1 or more, temperature above 0"
            )

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Classify each test image by its nearest training images."""
        images = LabeledSplit.of(train, test, work.progress)
        self._check(len(images.label))
        bank, query = (labeled_features(encoder, source, work) for source in (images.train, images.test))
        own_queries, classes = query.vector[own_slice(query.count)], images.classes
        guess = gather_rows(self.predict(bank.vector, bank.label, own_queries, classes), query.count)
        measures = accuracy(guess, query.label, images.trained_classes).measures()
        return Outcome(measures, bank.count, query.count, {})

    def predict(
        self, bank: Float[Tensor, "n d"], label: Int[Tensor, "n"], query: Float[Tensor, "q d"], classes: int
    ) -> Int[Tensor, "q t"]:
        """The five classes with the most votes (fewer if there are fewer), best first. Features may have any length."""
        self._check(len(bank))
        return vote(bank, label, query, classes, self.k, self.temperature)

    def _check(self, images: int) -> None:
        if images < self.k:
            raise UserError(
                f"kNN with k = {self.k} needs as many labeled training images, but there are {images}:"
                f" choose k of at most {images}, such as --k {min(20, images)}"
            )


@dataclass(frozen=True)
class NearestNeighbor:
    """The nearest training image names the class. Ring (arXiv 2010.02037) and local aggregation report it.

    The papers look images up in the memory bank, whose rows are running averages of features during training; here
    the training images are encoded again by the network under evaluation, so that any run can be evaluated, with or
    without a bank. One neighbor is one guess, so there is no top-5 accuracy.
    """

    name: ClassVar[str] = "nearest-neighbor"
    version: ClassVar[int] = 1

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Classify each test image by its nearest training image."""
        images = LabeledSplit.of(train, test, work.progress)
        bank, query = (labeled_features(encoder, source, work) for source in (images.train, images.test))
        guess = gather_rows(self.predict(bank.vector, bank.label, query.vector[own_slice(query.count)]), query.count)
        share = accuracy(guess[:, None], query.label, images.classes)
        return Outcome(share.measures(), bank.count, query.count, {})

    def predict(
        self, bank: Float[Tensor, "n d"], label: Int[Tensor, "n"], query: Float[Tensor, "q d"]
    ) -> Int[Tensor, "q"]:
        """Label of the training image with the highest cosine."""
        labels = [label[rows[:, 0]] for _, rows in nearest(bank, query, 1)]
        return torch.cat(labels) if labels else label.new_empty(0)
