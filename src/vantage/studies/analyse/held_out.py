"""I_NCE of a trained run on held-out images: how much two views share, as its critic estimates it.

InfoMin (Tian et al., arXiv 2005.10243) plots downstream accuracy against it. On the training images the estimate would
be too high, since the critic has been trained on them. Here the critic is fixed, cosine / τ, and images, views and
negatives are new to it, so that the mean estimates a lower bound of I(v₁; v₂), in nats, which with K negatives is at
most log(K + 1).

b: pairs   c: columns of a tile   d: width   n: images
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import fmean, stdev

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import draws
from vantage.branch import Branch
from vantage.data.sources.source import Source
from vantage.data.threads import prefetch
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.measures.information import nce
from vantage.studies.analyse.augmentation import draw_numbers
from vantage.studies.analyse.networks import TrainedNetworks

__all__ = ["BranchInformation", "HeldOutInformation", "Pairing", "nce_of_pairs", "pairing"]

_PART = 256  # images whose views are finished together, whatever goes through the network at once
_ROWS = 1024  # pairs of a tile
_MOST = 4_095  # negatives, if no number is given
_DRAW, _ORDER = 0x4E1D, 0x4E1E  # what a seed is for


@dataclass(frozen=True)
class BranchInformation:
    """How much the two views of a branch share, as its critic estimates it."""

    branch: int
    """Number of the branch."""

    pairs: str
    """Which views are paired."""

    estimates: tuple[float, ...]
    """I_NCE of each draw of the views and the negatives, in nats."""

    negatives: int
    """K: negatives of each pair."""

    images: int
    """Held-out images, of each of which a draw makes a pair."""

    @property
    def nats(self) -> float:
        """Their mean."""
        return fmean(self.estimates)

    @property
    def deviation(self) -> float:
        """Standard deviation over the draws; 0 for a single one."""
        return stdev(self.estimates) if len(self.estimates) > 1 else 0.0

    @property
    def bound(self) -> float:
        """log(K + 1): what no estimate exceeds, in nats."""
        return math.log(self.negatives + 1)


@dataclass(frozen=True)
class Pairing:
    """Which views a branch compares."""

    query: int
    """Number of the query's view; the run's own network encodes it."""

    key: int
    """Number of the key's view, encoded as keys are in training (for MoCo by the slow network)."""

    same_draw: bool
    """Whether both views are of one draw, as where keys are of the same step; if not, the key is of another draw, as a
    bank's row of the image is of an earlier one."""

    def words(self) -> str:
        """In words."""
        return f"view {self.query} with view {self.key} of {'the same' if self.same_draw else 'another'} draw"


def pairing(branch: Branch) -> Pairing:
    """The views that stand for the pairs of a branch on images that no memory holds.

    A branch whose keys are of the same step (`OtherViews`: MoCo, SimCLR; `FixedViews`: JCL) pairs its query with the
    first of them. One without pairs its image's row in a bank (`Remembered`: instance discrimination, CMC, PIRL): a
    mean of keys of earlier draws, for which one key of an independent draw stands here. Where other images are
    positives (`ClusterMate`, `NearMates`) it is the same, since held-out images have no clusters: what two views of one
    image share is measured then, not what mates do.
    """
    if branch.keys:
        return Pairing(branch.query, branch.keys[0], same_draw=True)
    return Pairing(branch.query, branch.pooled[0], same_draw=False)


@dataclass(frozen=True)
class HeldOutInformation:
    """How I_NCE is estimated on held-out images."""

    negatives: int = 0
    """K: negatives of each pair, keys of other held-out images; 0: all of them, at most 4,095. The bound is
    log(K + 1) nats."""

    images: int = 10_000
    """How many held-out images are used at most, drawn with the seed."""

    draws: int = 3
    """How often views and negatives are drawn; the error bar is the standard deviation over them."""

    seed: int = 0
    """Of images, views and negatives."""

    def __post_init__(self) -> None:
        if self.negatives < 0 or self.images < 2 or self.draws < 1:
            raise UserError(
                f"I_NCE with {self.negatives} negatives on {self.images} held-out images, drawn {self.draws} times:"
                " give no fewer than 0, 2 and 1"
            )

    def among(self, images: int) -> int:
        """K for a set of `images` held-out images. Raises `UserError` if these are too few."""
        images = min(images, self.images)
        if images < 2 or self.negatives >= images:
            raise UserError(
                f"I_NCE with {max(1, self.negatives)} negatives needs {max(1, self.negatives) + 1} held-out images or"
                f" more, found {images}: ask for fewer negatives, or hold out more images"
            )
        return self.negatives or min(_MOST, images - 1)

    def __call__(self, one: TrainedNetworks, source: Source, work: Work) -> tuple[BranchInformation, ...]:
        """I_NCE of every branch of a run, on images that it must not have been trained on.

        The views are those of the run's own view maker, the critic is cosine / τ without margins, and the networks are
        in evaluation mode, so that it is one function of a pair. Raises `UserError` where there are too few images,
        `UnreadableImage` for one that cannot be decoded.
        """
        image, count = draw_numbers(len(source), self.images, self.seed), self.among(len(source))
        pairings = [pairing(branch) for branch in one.branches]
        by_branch: list[list[float]] = [[] for _ in pairings]
        for number in range(self.draws):
            encode = _Encoding(one, source, image, pairings, work)
            first = encode(draws.mix(self.seed, _DRAW, number, 0))
            apart = any(not each.same_draw for each in pairings)
            other = encode(draws.mix(self.seed, _DRAW, number, 1)) if apart else first
            order = draws.mix(self.seed, _ORDER, number)
            for branch, each, estimates in zip(one.branches, pairings, by_branch, strict=True):
                query, key = first.queries[each.query], (first if each.same_draw else other).keys[each.key]
                pairs = nce_of_pairs(query, key, count, _temperature(branch), order)
                estimates.append(float(pairs.mean()))
        return tuple(
            BranchInformation(number, each.words(), tuple(estimates), count, len(image))
            for number, (each, estimates) in enumerate(zip(pairings, by_branch, strict=True))
        )


def _temperature(branch: Branch) -> float:
    temperature = getattr(branch.estimator, "temperature", None)
    if not isinstance(temperature, float):
        raise UserError(
            f"the critic of {type(branch.estimator).__name__} is unknown, since it has no temperature: give it one"
        )
    return temperature


def nce_of_pairs(
    query: Float[Tensor, "b d"], key: Float[Tensor, "b d"], negatives: int, temperature: float, seed: int
) -> Float[Tensor, "b"]:
    """NCE of each pair (query i, key i) with the critic query·key / τ, by `negatives` different keys of other pairs.

    Pairs are put into a random order drawn with the seed; the negatives of a pair are the keys of those that follow it,
    in a circle. At most log(negatives + 1) nats each; computed in float64. Raises `UserError` unless there is at least
    one negative, and more pairs than negatives.
    """
    count = len(query)
    if not 1 <= negatives < count:
        raise UserError(f"{negatives} negatives among the keys of {count} pairs: give 1 to {count - 1}")
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed)).to(query.device)
    query, key = query[order].double(), key[order].double()
    estimates = query.new_empty(count)
    for start in range(0, count, _ROWS):
        stop = min(start + _ROWS, count)
        row = torch.arange(start, stop, device=query.device)
        column = torch.arange(start, stop + negatives, device=query.device)
        logits = query[start:stop] @ key[column % count].T / temperature
        after = column - row[:, None]
        negative = logits[(after >= 1) & (after <= negatives)].view(len(row), negatives)
        estimates[order[start:stop]] = nce(logits.diagonal(), negative)
    return estimates


@dataclass(frozen=True)
class _Encoded:
    queries: dict[int, Float[Tensor, "n d"]]
    keys: dict[int, Float[Tensor, "n d"]]


class _Encoding:
    """The vectors of some images' views in a run: as queries, and as keys."""

    def __init__(
        self, one: TrainedNetworks, source: Source, image: Int[Tensor, "n"], pairings: Iterable[Pairing], work: Work
    ) -> None:
        pairings = tuple(pairings)
        self.one, self.source, self.work = one, source, work
        self.query_views = sorted({each.query for each in pairings})
        self.key_views = sorted({each.key for each in pairings})
        self.parts = [part.tolist() for part in image.split(_PART)]

    @torch.no_grad()
    def __call__(self, seed: int) -> _Encoded:
        """The vectors of one draw of the views: crops are a function of the seed and the image, the rest of the seed
        and the part."""
        maker, device = self.one.run.views, self.work.resolved_device()
        networks = self.one.learner.to(device).networks
        queries: dict[int, list[Tensor]] = {number: [] for number in self.query_views}
        keys: dict[int, list[Tensor]] = {number: [] for number in self.key_views}

        def crop(number: int) -> tuple[Tensor, ...]:
            return maker.crop(self.source.image(number), torch.Generator().manual_seed(draws.mix(seed, number, 0)))

        for number, crops in enumerate(prefetch(crop, self.parts, self.work.num_workers, 1)):
            generator = torch.Generator().manual_seed(draws.mix(seed, number, 1))
            together = tuple(torch.stack(same).to(device) for same in zip(*crops, strict=True))
            views = maker.finish(together, generator)
            for some in _split(views, self.work.batch_size):
                vectors = networks.queries({n: some[n] for n in self.query_views})
                _append(queries, vectors)
                _append(keys, networks.keys({n: some[n] for n in self.key_views}, vectors, seed))
        return _Encoded(*({n: torch.cat(parts) for n, parts in each.items()} for each in (queries, keys)))


def _split(views: list[Tensor], size: int) -> Iterator[list[Tensor]]:
    return (list(some) for some in zip(*(view.split(size) for view in views), strict=True))


def _append(to: dict[int, list[Tensor]], vectors: dict[int, Tensor]) -> None:
    for number, vector in vectors.items():
        to[number].append(vector)
