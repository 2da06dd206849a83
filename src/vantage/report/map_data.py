"""The numbers for the script of the map, packed so that fifty thousand images fit into the page.

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
"""Neighbors shown on a click."""


def images_data(source: Source) -> dict[str, Any]:
    """Data common to all maps of a page: names, classes and folders of the images. Names do not include the folder."""
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
    """Data of one run: positions in units of 1 / 65,535; neighbors; cosines as 100 (cosine + 1); outlier scores from 0
    (the smallest) to 255 (the limit above which an image counts as an outlier); and clusters."""
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
    """Encode numbers as the base64 of their bytes, row by row."""
    return base64.b64encode(np.ascontiguousarray(values).astype(kind).tobytes()).decode()
