"""Labels that the nearest neighbors contradict.

n: images   k: neighbors   c: classes
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.curation.neighbors import NearestImages

__all__ = ["LEAD", "Mistakes", "mistakes"]

TEMPERATURE = 0.07
"""A neighbor's vote weighs exp(cosine / temperature), as in kNN classification (Wu et al., arXiv 1805.01978)."""

_ROWS = 4096
"""Rows of the one table of votes in memory."""


LEAD = 0.5
"""A label counts as a mistake if another class leads by at least this share of the votes."""


@dataclass(frozen=True)
class Mistakes:
    """How much the neighbors of every image contradict its label."""

    score: Float[Tensor, "n"]
    """Share of the votes for `suggestion` minus that for the image's own label: from −1 (all agree) to 1 (all
    contradict). −1 for the only image of a class, since no neighbor could agree."""
    suggestion: Int[Tensor, "n"]
    """The other class with the most votes."""
    order: list[int]
    """All images, the most contradicted first."""

    @property
    def is_mistake(self) -> Bool[Tensor, "n"]:
        """Whether a label counts as a mistake: another class leads by half of the votes."""
        return self.score >= LEAD


def mistakes(neighbors: NearestImages, label: Int[Tensor, "n"], classes: int) -> Mistakes:
    """Labels that neighbors contradict: the neighbors of an image, without the image itself, vote for their labels."""
    scores, suggestions = [], []
    for rows, votes in _votes(neighbors, label, classes):
        own = label[rows, None]
        share, other = votes.scatter(1, own, -1).max(1)
        scores.append(share - votes.gather(1, own)[:, 0])
        suggestions.append(other)
    alone = label.bincount(minlength=classes)[label] == 1
    score = torch.cat(scores).masked_fill_(alone, -1)
    return Mistakes(score, torch.cat(suggestions), score.argsort(descending=True, stable=True).tolist())


def _votes(
    neighbors: NearestImages, label: Int[Tensor, "n"], classes: int
) -> Iterator[tuple[Int[Tensor, "b"], Float[Tensor, "b c"]]]:
    """Numbers of some images, and the share of votes of each class; all images, part by part."""
    for rows in torch.arange(len(label)).split(_ROWS):
        weight = (neighbors.cosine[rows] / TEMPERATURE).softmax(1)
        yield rows, weight.new_zeros(len(rows), classes).scatter_add_(1, label[neighbors.number[rows]], weight)
