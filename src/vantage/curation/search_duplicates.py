"""Search for near-duplicates, within a set of images and between two."""

from itertools import pairwise

import torch

from vantage.composition.field_types import expect
from vantage.curation.columns import DOUBT, ROWS, WIDE, features, label_column, names, tile
from vantage.curation.duplicates import ALIKE, FLOOR, groups, leaks, near_duplicates, ratio_to_nearest
from vantage.curation.findings import Findings
from vantage.curation.neighbors import neighbors_of
from vantage.curation.sheet import Tile
from vantage.data.sources.source import Source, class_of
from vantage.data.splits import check_apart
from vantage.encoding import Work
from vantage.errors import UserError, quantity
from vantage.frozen.encoder import FrozenEncoder
from vantage.machine.usual_torch import usual_torch

__all__ = ["find_duplicates", "find_leaks"]


@usual_torch()
def find_duplicates(encoder: FrozenEncoder, source: Source, work: Work | None = None, limit: float = ALIKE) -> Findings:
    """Groups of images that may be the same picture, the surest group first. The first image of each group, in the
    order of the source, is the one to keep.

    The rule is that of `vantage.curation.duplicates.near_duplicates`; chains of near-duplicates are one group. Raises
    `UserError` for fewer than two images, for features that are not finite, and for a limit that is not positive.
    """
    work = work or Work()
    _check_limit(limit)
    vector = features(encoder, source, work)
    neighbors = neighbors_of(vector, progress=work.progress)
    duplicates = near_duplicates(neighbors, limit)
    group = groups(duplicates, neighbors, vector)
    numbers = (group >= 0).nonzero().squeeze(1)
    members = numbers[group[numbers].argsort(stable=True)]
    number, distance = group[members], neighbors.distance[members, 0].tolist()
    keep = torch.ones(len(members), dtype=torch.bool)
    keep[1:] = number[1:] != number[:-1]
    columns = {
        "group": (number + 1).tolist(),
        "image": names(source, members.tolist()),
        "keep": keep.tolist(),
        "nearest": names(source, neighbors.number[members, 0].tolist()),
        "distance": distance,
        "ratio": ratio_to_nearest(neighbors)[members].tolist(),
        **label_column(source, members.tolist()),
    }
    captions = ["keep" if one else f"{gap:.4f}" for one, gap in zip(keep.tolist(), distance, strict=True)]
    starts = keep.nonzero().squeeze(1).tolist()
    tiles = [
        [_with_class(source, int(members[place]), captions[place]) for place in range(start, min(end, start + WIDE))]
        for start, end in pairwise([*starts, len(members)][: ROWS + 1])
    ]
    remaining = len(source) - len(members) + len(starts)
    summary = (
        f"near-duplicates: {quantity(len(starts), 'group')} with {len(members):,} of {quantity(len(source), 'image')}; "
        f"{remaining:,} are left with one of each group"
    )
    return Findings(summary, _duplicates_rule(limit) + DOUBT * duplicates.same, columns, tiles)


@usual_torch()
def find_leaks(
    encoder: FrozenEncoder, source: Source, test: Source, work: Work | None = None, limit: float = ALIKE
) -> Findings:
    """Test images with a near-duplicate among other images, such as those a network is trained on; the surest first.

    The rule is that of `vantage.curation.duplicates.leaks`. Raises `UserError` if both sets are the same, for fewer
    than two images, for features that are not finite, and for a limit that is not positive.
    """
    work = work or Work()
    _check_limit(limit)
    check_apart(source, test, "to find duplicates among the images")
    nearest = leaks(features(encoder, source, work), features(encoder, test, work), work.progress)
    order = nearest.ratio.argsort(stable=True)
    rows = order[nearest.ratio[order] <= limit]
    numbers, matches, distance = rows.tolist(), nearest.number[rows].tolist(), nearest.distance[rows].tolist()
    columns = {
        "test_image": names(test, numbers),
        "image": names(source, matches),
        "distance": distance,
        "ratio": nearest.ratio[rows].tolist(),
        **label_column(test, numbers, "test_label"),
        **label_column(source, matches),
    }
    tiles = [
        [_with_class(test, one, "test"), _with_class(source, other, f"{gap:.4f}")]
        for one, other, gap in zip(numbers[:ROWS], matches, distance, strict=False)
    ]
    share = len(numbers) / len(test)
    summary = (
        f"leaks: {len(numbers):,} of {quantity(len(test), 'test image')} ({share:.1%}), near-duplicates of some of "
        f"{quantity(len(source), 'image')}"
    )
    return Findings(summary, _duplicates_rule(limit) + DOUBT * nearest.same, columns, tiles)


def _check_limit(limit: float) -> None:
    expect(limit, int | float, "the limit", f"a positive number, such as {ALIKE:g}")
    if not limit > 0:
        raise UserError(f"limit is {limit:g}: give a positive number, such as {ALIKE:g}")


def _with_class(source: Source, number: int, caption: str) -> Tile:
    """An image of a contact sheet, with a caption and its class below it: copies in two classes are worth a look."""
    return tile(source, number, f"{caption} {class_of(source, number)}".rstrip())


def _duplicates_rule(limit: float) -> str:
    return (
        f"near-duplicates are at most {limit:g} times as far apart (1 − cosine) as each of the two is from its ten "
        f"nearest neighbors on average, which counts as at least {FLOOR:g} times its median"
    )
