"""Positions of vectors on a plane, by t-SNE.

n: vectors   m: vectors that t-SNE lays out   d: width
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vantage import draws
from vantage.measures.neighbors import nearest

__all__ = ["FEWEST_PLACED", "MOST_LAID_OUT", "places"]

FEWEST_PLACED = 5
"""With fewer vectors than this, there is no layout."""

MOST_LAID_OUT = 10_000
"""Most vectors that t-SNE lays out, in two minutes on one core; fifty thousand would take half an hour."""

_DIRECTIONS, _GUIDES = 50, 10


def places(vector: Float[Tensor, "n d"], num_workers: int = 1) -> Float[Tensor, "n 2"]:
    """Each vector's position in the unit square, by t-SNE.

    With more than 10,000 vectors, 10,000 drawn with seed 0 are laid out. Every other one gets the median, along each
    axis, of the positions of the ten laid-out vectors that are nearest by cosine. The vectors must vary, and there must
    be at least five.
    """
    if len(vector) <= MOST_LAID_OUT:
        return _centered(_tsne(vector, num_workers))
    order = draws.permutation(len(vector), 0)
    some, others = order[:MOST_LAID_OUT], order[MOST_LAID_OUT:]
    guide_places = _tsne(vector[some], num_workers)
    guides = torch.cat([number.cpu() for _, number in nearest(vector[some], vector[others], _GUIDES)])
    place = torch.empty(len(vector), 2)
    place[some], place[others] = guide_places, guide_places[guides].median(1).values
    return _centered(place)


def _tsne(vector: Float[Tensor, "m d"], num_workers: int) -> Float[Tensor, "m 2"]:
    """Scikit-learn's t-SNE (van der Maaten & Hinton 2008; Barnes-Hut) of the first 50 principal components of the unit
    vectors: perplexity 30 (less below 91 vectors), initialized with two principal components, random state 0."""
    from sklearn.decomposition import PCA
    from sklearn.manifold import TSNE

    unit = torch.nn.functional.normalize(vector, dim=1).numpy()
    few = PCA(min(_DIRECTIONS, *unit.shape), random_state=0).fit_transform(unit)
    perplexity = min(30.0, (len(few) - 1) / 3)
    tsne = TSNE(init="pca", perplexity=perplexity, random_state=0, n_jobs=num_workers)
    return torch.from_numpy(tsne.fit_transform(few).astype(np.float32))


def _centered(place: Float[Tensor, "n 2"]) -> Float[Tensor, "n 2"]:
    """The same layout, centered and scaled to the unit square."""
    low, high = place.amin(0), place.amax(0)
    return (place - (low + high) / 2) / (high - low).amax().clamp(min=1e-12) + 0.5
