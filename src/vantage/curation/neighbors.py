"""The nearest images of every image, in feature space.

n: images   m: some images   q: images looked up   d: width of the features   k: neighbors
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.curation.faiss_search import faiss_is_faster, nearest_by_faiss
from vantage.measures import nearest
from vantage.progress import Progress, QuietProgress, task

__all__ = ["NEAREST", "SAME", "NearestImages", "neighbors_among", "neighbors_of"]

NEAREST = 10
"""Neighbors of an image, unless the caller sets another number."""

SAME = 1e-5
"""Distances up to this are rounding: the features are the same."""


@dataclass(frozen=True)
class NearestImages:
    """The nearest images of some images."""

    cosine: Float[Tensor, "n k"]
    """Cosines of the features, nearest first."""
    number: Int[Tensor, "n k"]
    """Numbers of the images."""

    @property
    def distance(self) -> Float[Tensor, "n k"]:
        """1 − cosine."""
        return (1 - self.cosine).clamp(min=0)

    @property
    def same(self) -> bool:
        """Whether most images have the same features as their nearest, so that searches mean nothing."""
        return float(self.distance[:, 0].median()) <= SAME


def neighbors_of(
    vector: Float[Tensor, "n d"],
    k: int = NEAREST,
    progress: Progress | None = None,
    numbers: Int[Tensor, "m"] | None = None,
) -> NearestImages:
    """The k nearest images of every image by the cosine of their features (fewer if there are fewer): exact, in tables
    of bounded size, on the device of the features. The result is on the CPU. With `numbers`, only for these
    images."""
    k = min(k, len(vector) - 1)
    query = vector if numbers is None else vector[numbers.to(vector.device)]
    candidates = neighbors_among(vector, query, k + 1, progress)
    others = candidates.number != (torch.arange(len(vector)) if numbers is None else numbers)[:, None]
    others[others.all(1), -1] = False  # more than k images are as near as the image itself
    return NearestImages(candidates.cosine[others].view(-1, k), candidates.number[others].view(-1, k))


def neighbors_among(
    bank: Float[Tensor, "n d"], query: Float[Tensor, "q d"], k: int, progress: Progress | None = None
) -> NearestImages:
    """The k nearest images of a bank for each image that is looked up in it (fewer if there are fewer): by faiss if it
    is installed and faster, which changes no more than rounding and the order of equal cosines."""
    search = nearest_by_faiss if faiss_is_faster(bank, query) else nearest
    k, start, progress = min(k, len(bank)), 0, progress or QuietProgress()
    cosines, numbers = torch.empty(len(query), k), torch.empty(len(query), k, dtype=torch.int64)
    with task(progress, "comparing images", len(query)):
        for cosine, number in search(bank, query, k):
            end = start + len(number)
            cosines[start:end], numbers[start:end] = cosine, number
            progress.advance(start := end)
    return NearestImages(cosines, numbers)
