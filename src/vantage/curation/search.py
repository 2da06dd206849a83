"""Search for outliers, representatives and labels that are mistakes, by the features of an encoder."""

from collections.abc import Sequence
from typing import Literal, get_args

from vantage.curation.columns import DOUBT, ROWS, WIDE, features, label_column, names, tile
from vantage.curation.findings import Findings
from vantage.curation.mistakes import LEAD, mistakes
from vantage.curation.neighbors import neighbors_of
from vantage.curation.outliers import outliers
from vantage.curation.representatives import check_count, cluster_centers, k_centers
from vantage.curation.sheet import Tile
from vantage.data.sources.names import text_of
from vantage.data.sources.source import Source, class_count, class_of, classes_in_words, labels_of, marks_in
from vantage.data.sources.subset import SourceSubset
from vantage.encoding import Work
from vantage.errors import UserError, quantity
from vantage.frozen.encoder import FrozenEncoder
from vantage.machine.usual_torch import usual_torch

_Method = Literal["clusters", "k-center"]

__all__ = ["find_mistakes", "find_outliers", "find_representatives"]

_TILES = 64
"""Most images of a contact sheet whose rows have no meaning."""

_VOTERS = 20
"""Neighbors that vote on a label."""


@usual_torch()
def find_outliers(encoder: FrozenEncoder, source: Source, work: Work | None = None) -> Findings:
    """All images by their mean distance (1 − cosine) to their ten nearest neighbors, the farthest first. Outliers are
    those above the upper quartile plus three times the interquartile range (Tukey's outer fence).

    Raises `UserError` for fewer than two images, and for features that are not finite.
    """
    work = work or Work()
    neighbors = neighbors_of(features(encoder, source, work), progress=work.progress)
    far = outliers(neighbors)
    score = far.score[far.number].tolist()
    columns = {
        "image": names(source, far.number),
        "score": score,
        "outlier": [value > far.limit for value in score],
        "nearest": names(source, neighbors.number[far.number, 0].tolist()),
        **label_column(source, far.number),
    }
    tiles = [
        tile(source, one, f"{value:.3f}{' outlier' * (value > far.limit)}", framed=value > far.limit)
        for one, value in zip(far.number[:_TILES], score, strict=False)
    ]
    summary = f"outliers: {far.count:,} of {quantity(len(source), 'image')}"
    rule = (
        "score: mean distance (1 − cosine) to the ten nearest neighbors; an outlier is above "
        f"{far.limit:.4g}: the upper quartile plus three times the interquartile range"
    )
    return Findings(summary, rule + DOUBT * neighbors.same, columns, _in_rows(tiles))


@usual_torch()
def find_representatives(
    encoder: FrozenEncoder,
    source: Source,
    count: int = 100,
    by: _Method = "clusters",
    work: Work | None = None,
) -> Findings:
    """`count` images that stand for all and should be labeled first: those nearest to the centers of as many clusters,
    or the choice of k-center greedy, which also covers rare images and so takes unusual ones first.

    Raises `UserError` for more representatives than images, for fewer than two images, and for features that are not
    finite.
    """
    work = work or Work()
    if by not in get_args(_Method):
        raise UserError(f"there is no choice of representatives by {by!r}: give 'clusters' or 'k-center'")
    check_count(count, len(source))
    vector = features(encoder, source, work)
    representatives = cluster_centers(vector, count) if by == "clusters" else k_centers(vector, count)
    numbers = representatives.number.tolist()
    columns = {
        "order": list(range(1, count + 1)),
        "image": names(source, numbers),
        "distance": representatives.distance.tolist(),
        "covered": representatives.coverage.tolist(),
        **label_column(source, numbers),
    }
    coverage = zip(numbers[:_TILES], columns["covered"], strict=False)
    tiles = [tile(source, number, f"for {size:,}") for number, size in coverage]
    summary = f"representatives: {count:,} of {quantity(len(source), 'image')}"
    rule = {
        "clusters": "the image nearest to the center of each k-means cluster, the largest cluster first",
        "k-center": "each is the farthest from all before it (k-center greedy); the first is nearest to the mean",
    }
    return Findings(summary, rule[by], columns, _in_rows(tiles))


@usual_torch()
def find_mistakes(encoder: FrozenEncoder, source: Source, work: Work | None = None) -> Findings:
    """All labeled images by how much their 20 nearest labeled neighbors contradict the label; likely mistakes first.
    The rule is that of `vantage.curation.mistakes.mistakes`.

    Raises `UserError` for images of fewer than two classes, for images that may show several classes, and for features
    that are not finite.
    """
    work = work or Work()
    source = _of_two_classes(source)
    label = labels_of(source)
    neighbors = neighbors_of(features(encoder, source, work), _VOTERS, work.progress)
    doubts = mistakes(neighbors, label, class_count(label, source))
    order, class_names = doubts.order, [text_of(name) for name in source.classes]
    count = int(doubts.is_mistake.sum())
    columns = {
        "image": names(source, order),
        **label_column(source, order),
        "suggested": [
            class_names[one] if one < len(class_names) else str(one) for one in doubts.suggestion[order].tolist()
        ],
        "score": doubts.score[order].tolist(),
        "mistake": doubts.is_mistake[order].tolist(),
    }
    tiles = [
        [
            tile(source, one, f"{class_of(source, one)}: {suggested}?", framed=True),
            *(tile(source, other, class_of(source, other)) for other in neighbors.number[one, : WIDE - 1].tolist()),
        ]
        for one, suggested in zip(order[: min(ROWS, count)], columns["suggested"], strict=False)
    ]
    summary = f"likely mistakes: {count:,} of {quantity(len(source), 'label')} ({count / len(source):.1%})"
    rule = (
        f"the {neighbors.number.shape[1]} nearest neighbors vote for their labels; a label is a likely mistake if "
        f"another class leads by {LEAD:g} of the votes or more (score)"
    )
    return Findings(summary, rule + DOUBT * neighbors.same, columns, tiles)


def _of_two_classes(source: Source) -> Source:
    """The labeled images. Raises `UserError` unless they have two classes or more, and one class each."""
    if (marks := marks_in(source)) is not None:
        raise UserError(
            "mistakes are sought among images with one class each, but these may show several classes"
            f"{classes_in_words(source, marks)}"
        )
    label = labels_of(source)
    if len(label[label >= 0].unique()) < 2:
        raise UserError(
            "mistakes are sought among labels of two classes or more: put each class in a folder of its own, or name "
            "the classes in a list file"
        )
    return source if bool((label >= 0).all()) else SourceSubset(source, (label >= 0).nonzero().squeeze(1))


def _in_rows(tiles: Sequence[Tile]) -> list[Sequence[Tile]]:
    return [tiles[start : start + WIDE] for start in range(0, len(tiles), WIDE)]
