"""What the features of one run show about the images of a page, with the pictures to display."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.curation.duplicates import Duplicates, near_duplicates, various_pairs
from vantage.curation.neighbors import NearestImages, neighbors_of
from vantage.curation.outliers import Outliers, outliers
from vantage.data.sources.names import text_of
from vantage.data.sources.source import Source, class_of, labels_of
from vantage.report.clusters import Clusters
from vantage.report.image_facts import Spectrum, best_and_worst, spectrum
from vantage.report.pictures import Thumbnails

__all__ = ["Gallery", "ImageFacts", "Query", "PageImage", "gallery", "image_facts"]

QUERIES, NEAREST, MOST_SHOWN = 6, 6, 12
"""Queries of each kind, neighbors shown beside each query, and most pictures of any other kind."""


@dataclass(frozen=True)
class ImageFacts:
    """All measurements of one run's features."""

    neighbors: NearestImages
    """The ten nearest neighbors of every image."""
    best: list[int]
    """Queries with the best neighbors."""
    worst: list[int]
    """Queries with the worst neighbors."""
    duplicates: Duplicates
    """Near-duplicates."""
    outliers: Outliers
    """Images far from all others."""
    spectrum: Spectrum
    """Variance of the features by direction."""


@dataclass(frozen=True)
class PageImage:
    """One image on the page."""

    name: str
    """Its name in the source."""
    picture: str
    """The picture, as a data URI."""
    caption: str
    """A word or a number below it."""
    right: bool | None = None
    """Whether it has the same class as the query beside it; None without labels."""


@dataclass(frozen=True)
class Query:
    """An image with other images beside it."""

    image: PageImage
    """The image."""
    others: list[PageImage]
    """The images beside it."""


@dataclass(frozen=True)
class Gallery:
    """The pictures of one run's page."""

    best: list[Query]
    """Queries with the best neighbors."""
    worst: list[Query]
    """Queries with the worst neighbors."""
    duplicates: list[Query]
    """Pairs of near-duplicates."""
    outliers: list[PageImage]
    """The images farthest from all others."""
    clusters: list[tuple[int, int, list[PageImage]]]
    """Number, size and some images of the largest clusters."""


def image_facts(vector: Float[Tensor, "n d"], source: Source) -> ImageFacts:
    """Measure the features of a source's images, of which there must be at least two."""
    neighbors = neighbors_of(vector)
    duplicates = near_duplicates(neighbors)
    alike = set(duplicates.pair.flatten().tolist())
    best, worst = best_and_worst(neighbors, labels_of(source), QUERIES, set() if duplicates.same else alike)
    return ImageFacts(neighbors, best, worst, duplicates, outliers(neighbors), spectrum(vector))


def gallery(facts: ImageFacts, source: Source, thumbnails: Thumbnails, clusters: Clusters | None) -> Gallery:
    """The pictures for a run's facts and clusters."""

    def page_image(number: int, caption: str = "", beside: int | None = None) -> PageImage:
        own, other = source.label(number), None if beside is None else source.label(beside)
        right = None if own is None or other is None else own == other
        return PageImage(text_of(source.name(number)), thumbnails(number), caption or class_of(source, number), right)

    def query(number: int) -> Query:
        near = facts.neighbors.number[number, :NEAREST].tolist()
        cosines = facts.neighbors.cosine[number, :NEAREST].tolist()
        return Query(
            page_image(number),
            [page_image(one, f"{value:.2f}", number) for one, value in zip(near, cosines, strict=True)],
        )

    duplicates, most = facts.duplicates, 0 if facts.duplicates.same else MOST_SHOWN
    places = various_pairs(duplicates, len(source), most)
    pairs = zip(duplicates.pair[places].tolist(), duplicates.distance[places].tolist(), strict=True)
    scores, groups = facts.outliers.score, clusters.largest(8) if clusters else []
    return Gallery(
        [query(number) for number in facts.best],
        [query(number) for number in facts.worst],
        [Query(page_image(one), [page_image(other, f"{gap:.4f}")]) for (one, other), gap in pairs],
        [page_image(number, f"{float(scores[number]):.3f}") for number in facts.outliers.number[:MOST_SHOWN]],
        [
            (number, size, [page_image(one) for one in _members(clusters, number)])
            for number, size in groups
            if clusters is not None
        ],
    )


def _members(clusters: Clusters, number: int) -> Sequence[int]:
    """Some images of a cluster, evenly spaced among its members."""
    assert clusters.label is not None
    rows = (clusters.label == number).nonzero()[:, 0]
    return rows[torch.linspace(0, len(rows) - 1, min(8, len(rows))).long()].tolist()
