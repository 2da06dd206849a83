"""Positions of images on a plane, by t-SNE of their features, cached in the run's folder.

n: images   m: images that t-SNE lays out   d: width of the features
"""

import io
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vantage.measures import nearest
from vantage.storage.arrays import open_rows
from vantage.storage.cache import hash_of, try_write

__all__ = ["FEWEST", "MOST_LAID_OUT", "stored_places", "places"]

FEWEST = 5
"""With fewer images than this, there is no layout."""

MOST_LAID_OUT = 10_000
"""Most images that t-SNE lays out, in two minutes on one core; fifty thousand would take half an hour."""

_VERSION, _VERSION_OF_MANY = "tsne-1", "tsne-and-medians-1"
_DIRECTIONS, _GUIDES = 50, 10


def stored_places(
    vector: Float[Tensor, "n d"], facts: tuple[str, ...], folder: Path, num_workers: int
) -> Float[Tensor, "n 2"]:
    """`places`, read from a file in `folder` if these features were laid out before. `facts` identify the features:
    encoder, view and images. If the folder is not writable, the next call takes the same time again."""
    version = _VERSION if len(vector) <= MOST_LAID_OUT else _VERSION_OF_MANY
    file = folder / f"map-{hash_of(fact.encode() for fact in (*facts, version))[:16]}.npy"
    rows = open_rows(file, len(vector))  # None unless it has this many rows
    if rows is not None and rows.row == (2,) and rows.dtype == np.float32:
        places_before = rows.part(0, rows.count)
        if bool(torch.isfinite(places_before).all()):
            return places_before
    new_places = places(vector, num_workers)
    content = io.BytesIO()
    np.save(content, new_places.numpy())
    folder.mkdir(parents=True, exist_ok=True)
    try_write(file, content.getvalue())
    return new_places


def places(vector: Float[Tensor, "n d"], num_workers: int = 1) -> Float[Tensor, "n 2"]:
    """Each image's position in the unit square, by t-SNE.

    With more than 10,000 images, 10,000 drawn with seed 0 are laid out. Every other image gets the median, along each
    axis, of the positions of the ten laid-out images whose features are nearest by cosine. The features must vary, and
    there must be at least five images.
    """
    if len(vector) <= MOST_LAID_OUT:
        return _centered(_tsne(vector, num_workers))
    order = torch.randperm(len(vector), generator=torch.Generator().manual_seed(0))
    some, others = order[:MOST_LAID_OUT], order[MOST_LAID_OUT:]
    guide_places = _tsne(vector[some], num_workers)
    guides = torch.cat([number.cpu() for _, number in nearest(vector[some], vector[others], _GUIDES)])
    place = torch.empty(len(vector), 2)
    place[some], place[others] = guide_places, guide_places[guides].median(1).values
    return _centered(place)


def _tsne(vector: Float[Tensor, "m d"], num_workers: int) -> Float[Tensor, "m 2"]:
    """Scikit-learn's t-SNE (van der Maaten & Hinton 2008; Barnes-Hut) of the first 50 principal components of the unit
    features: perplexity 30 (less below 91 images), initialized with two principal components, random state 0."""
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
