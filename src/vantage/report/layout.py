"""Positions of images on a plane (`vantage.measures.layout`), cached in the run's folder.

n: images   d: width of the features
"""

import io
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from vantage.measures import layout
from vantage.storage.cache import hash_of, try_write
from vantage.storage.rows_file import open_rows

__all__ = ["stored_places"]

_VERSION, _VERSION_OF_MANY = "tsne-1", "tsne-and-medians-1"


def stored_places(
    vector: Float[Tensor, "n d"], facts: tuple[str, ...], folder: Path, num_workers: int
) -> Float[Tensor, "n 2"]:
    """`layout.places`, read from a file in `folder` if these features were laid out before.

    `facts` identify the features: encoder, view and images. If the folder is not writable, the next call takes the same
    time again.
    """
    version = _VERSION if len(vector) <= layout.MOST_LAID_OUT else _VERSION_OF_MANY
    file = folder / f"map-{hash_of([*facts, version])[:16]}.npy"
    rows = open_rows(file, len(vector))  # None unless it has this many rows
    if rows is not None and rows.row == (2,) and rows.dtype == np.float32:
        places_before = rows.part(0, rows.count)
        if bool(torch.isfinite(places_before).all()):
            return places_before
    new_places = layout.places(vector, num_workers)
    content = io.BytesIO()
    np.save(content, new_places.numpy())
    try_write(file, content.getvalue())
    return new_places
