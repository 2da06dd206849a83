"""The numbers that the script of the map reads: packed, since fifty thousand images must fit into the page.

n: images   k: neighbors
"""

import base64
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from vantage.data.sources.names import text_of
from vantage.data.sources.source import Source, labels_of
from vantage.report.clusters import Clusters
from vantage.report.gallery import ImageFacts

__all__ = ["NEAREST", "images_data", "run_data"]

NEAREST = 8
"""Neighbors that a click shows."""


def images_data(source: Source) -> dict[str, Any]:
    """What all maps of a page share: names, classes and folders of the images. A name is what follows the folder."""
    parts = [text_of(source.name(number)).rpartition("/") for number in range(len(source))]
    folders = sorted({folder for folder, _, _ in parts})
    place = {folder: number for number, folder in enumerate(folders)}
    label = labels_of(source).numpy()
    return {
        "count": len(source),
        "names": [name for _, _, name in parts],
        "folders": folders,
        "folder": pack(np.array([place[folder] for folder, _, _ in parts]), "<u2"),
        "classes": [text_of(name) for name in source.classes],
        "label": pack(label, "<i4") if bool((label >= 0).any()) else None,
    }


def run_data(name: str, place: Float[Tensor, "n 2"], facts: ImageFacts, clusters: Clusters | None) -> dict[str, Any]:
    """What belongs to one run: places in 1 / 65,535, neighbors, cosines in hundredths and one more, outlier scores from
    0 to 255 between the least and the limit above which an image counts as an outlier, and clusters."""
    number, cosine = facts.neighbors.number[:, :NEAREST], facts.neighbors.cosine[:, :NEAREST]
    score, least = facts.outliers.score, float(facts.outliers.score.min())
    scores = (score - least) / max(facts.outliers.limit - least, 1e-12) * 255
    label = clusters.label if clusters is not None else None
    return {
        "name": name,
        "place": pack((place * 65_535).round().clamp(0, 65_535).numpy(), "<u2"),
        "near": pack(number.numpy(), "<u2"),
        "nearest": number.shape[1],
        "cosine": pack((cosine * 100 + 100).round().clamp(0, 200).numpy(), "u1"),
        "score": pack(scores.round().clamp(0, 255).numpy(), "u1"),
        "cluster": None if label is None else pack(label.numpy(), "<i4"),
    }


def pack(values: np.ndarray, kind: str) -> str:
    """Numbers as base64 of their bytes, row by row."""
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()
