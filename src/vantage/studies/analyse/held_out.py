"""I_NCE of a trained run on held-out images: the information that two views share, as estimated by its critic.

InfoMin (Tian et al., arXiv 2005.10243) plots downstream accuracy against it. On the training images the estimate would
be too high, since the critic was trained on them. Here the critic, cosine / τ, is fixed and has not seen the images,
views and negatives, so the mean estimates a lower bound of I(v₁; v₂) in nats, which with K negatives is at most
log(K + 1).

b: pairs   d: width of the vectors   n: images
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import draws
from vantage.branch import Branch
from vantage.data.sources.source import Source
from vantage.data.threads import prefetch
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks
from vantage.measures.information import nce
from vantage.studies.analyse.augmentation import draw_numbers
from vantage.studies.analyse.information_table import BranchInformation, InformationTable

__all__ = ["HeldOutInformation", "Pairing", "nce_of_pairs", "pairing"]

_PART = 256  # images whose views are finished together, independent of the network's batch size
_ROWS = 1024  # pairs of a tile
_MAX_NEGATIVES = 4_095  # used if no number is given


@dataclass(frozen=True)
class Pairing:
    """Which views a branch compares."""

    query: int
    """Number of the query's view, which the run's own network encodes."""

    key: int
    """Number of the key's view, encoded as keys are in training (for MoCo, by the momentum encoder)."""

    same_draw: bool
    """Whether both views come from one draw, as when keys are of the same step; otherwise the key comes from another
    draw, just as a bank's row for an image comes from an earlier one."""

    def words(self) -> str:
        """The pairing in words."""
        return f"view {self.query} with view {self.key} of {'the same' if self.same_draw else 'another'} draw"


def pairing(branch: Branch) -> Pairing:
    """The views that represent the pairs of a branch for images that are in no memory.

    A branch whose keys are of the same step (`OtherViews`: MoCo, SimCLR; `FixedViews`: JCL) pairs its query with the
    first of them. A branch without such keys pairs the query with its image's row in a bank (`Remembered`: instance
    discrimination, CMC, PIRL), which is a mean of keys from earlier draws; here it is represented by one key from an
    independent draw. The same holds if other images are positives (`ClusterMate`, `NearMates`), since held-out images
    have no clusters: this measures what two views of one image share, not what mates share.
    """
    if branch.keys:
        return Pairing(branch.query, branch.keys[0], same_draw=True)
    return Pairing(branch.query, branch.pool_views[0], same_draw=False)


@dataclass(frozen=True)
class HeldOutInformation:
    """I_NCE of every branch of a run, in nats: how much information its two views share, as its own critic estimates it
    (InfoMin, Tian et al., arXiv 2005.10243). Give images that the run was not trained on: on others it is too high."""

    name: ClassVar[str] = "information"

    negatives: int = 0
    """K: the number of negatives of each pair, which are keys of other held-out images; 0: all of them, at most 4,095.
    The bound is log(K + 1) nats."""

    images: int = 10_000
    """Maximum number of held-out images, drawn with the seed."""

    draws: int = 3
    """Number of times that views and negatives are drawn; the error bar is the standard deviation over these draws."""

    seed: int = 0
    """Seed of images, views and negatives."""

    def __post_init__(self) -> None:
        if self.negatives < 0 or self.images < 2 or self.draws < 1:
            raise UserError(
                f"I_NCE with {self.negatives} negatives on {self.images} held-out images, drawn {self.draws} times:"
                " give no fewer than 0, 2 and 1"
            )

    def negative_count(self, images: int) -> int:
        """K for a set of `images` held-out images. Raises `UserError` if these are too few."""
        images = min(images, self.images)
        if images < 2 or self.negatives >= images:
            raise UserError(
                f"I_NCE with {max(1, self.negatives)} negatives needs {max(1, self.negatives) + 1} held-out images or"
                f" more, found {images}: ask for fewer negatives, or hold out more images"
            )
        return self.negatives or min(_MAX_NEGATIVES, images - 1)

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> InformationTable:
        """I_NCE of every run. Raises the same errors as `of`."""
        return InformationTable(tuple((one.name, self.of(one, source, work)) for one in runs))

    def of(self, model: TrainedNetworks, source: Source, work: Work) -> tuple[BranchInformation, ...]:
        """I_NCE of every branch of a run, on images that it must not have been trained on.

        The views are those of the run's own view maker, the critic is cosine / τ without margins, and the networks are
        in evaluation mode, so that the critic is a fixed function of a pair. Raises `UserError` if there are too few
        images, `UnreadableImage` for one that cannot be decoded.
        """
        image, count = draw_numbers(len(source), self.images, self.seed), self.negative_count(len(source))
        pairings = [pairing(branch) for branch in model.branches]
        by_branch: list[list[float]] = [[] for _ in pairings]
        encode = partial(_encode_views, model, source, image, pairings, work)
        needs_second_draw = any(not each.same_draw for each in pairings)
        for number in range(self.draws):
            first = encode(draws.mix(self.seed, draws.Purpose.HELD_OUT_VIEWS, number, 0))
            other = (
                encode(draws.mix(self.seed, draws.Purpose.HELD_OUT_VIEWS, number, 1)) if needs_second_draw else first
            )
            order = draws.mix(self.seed, draws.Purpose.HELD_OUT_NEGATIVES, number)
            for branch, each, estimates in zip(model.branches, pairings, by_branch, strict=True):
                query, key = first.queries[each.query], (first if each.same_draw else other).keys[each.key]
                pairs = nce_of_pairs(query, key, count, _temperature(branch), order)
                estimates.append(float(pairs.mean()))
        return tuple(
            BranchInformation(number, each.words(), tuple(estimates), count, len(image))
            for number, (each, estimates) in enumerate(zip(pairings, by_branch, strict=True))
        )


def _temperature(branch: Branch) -> float:
    temperature = getattr(branch.estimator, "temperature", None)
    if not isinstance(temperature, float | int):
        raise UserError(
            f"the critic of {type(branch.estimator).__name__} is unknown, since it has no temperature: give it a"
            " field `temperature`"
        )
    return float(temperature)


def nce_of_pairs(
    query: Float[Tensor, "b d"], key: Float[Tensor, "b d"], negatives: int, temperature: float, seed: int
) -> Float[Tensor, "b"]:
    """NCE of each pair (query i, key i) with the critic query·key / τ, and `negatives` different keys of other pairs.

    The pairs are put into a random order drawn with the seed; the negatives of a pair are the keys of the pairs that
    follow it, cyclically. Each value is at most log(negatives + 1) nats; computed in float64. Raises `UserError` unless
    there is at least one negative, and more pairs than negatives.
    """
    count = len(query)
    if not 1 <= negatives < count:
        raise UserError(f"{negatives} negatives among the keys of {count} pairs: give 1 to {count - 1}")
    order = draws.permutation(count, seed).to(query.device)
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
class _ViewVectors:
    queries: dict[int, Float[Tensor, "n d"]]
    keys: dict[int, Float[Tensor, "n d"]]


@torch.no_grad()
def _encode_views(
    model: TrainedNetworks, source: Source, image: Int[Tensor, "n"], pairings: Sequence[Pairing], work: Work, seed: int
) -> _ViewVectors:
    """One draw of the views of some images, encoded by a run's networks as queries and as keys. Crops depend on the
    seed and the image, all other random numbers on the seed and the part."""
    maker, device = model.run.views, work.resolved_device()
    networks = model.learner.to(device).networks
    queries: dict[int, list[Tensor]] = {view: [] for view in sorted({each.query for each in pairings})}
    keys: dict[int, list[Tensor]] = {view: [] for view in sorted({each.key for each in pairings})}

    def crop(number: int) -> tuple[Tensor, ...]:
        return maker.crop(source.image(number), torch.Generator().manual_seed(draws.mix(seed, number, 0)))

    parts = [part.tolist() for part in image.split(_PART)]
    for number, crops in enumerate(prefetch(crop, parts, work.num_workers, 1)):
        generator = torch.Generator().manual_seed(draws.mix(seed, number, 1))
        images = tuple(torch.stack(same).to(device) for same in zip(*crops, strict=True))
        for batch in _split(maker.finish(images, generator), work.batch_size):
            vectors = networks.queries({view: batch[view] for view in queries})
            _append(queries, vectors)
            views = {view: batch[view] for view in keys}
            _append(keys, networks.keys(views, vectors, networks.orders(views, seed)))
    return _ViewVectors(*({view: torch.cat(parts) for view, parts in each.items()} for each in (queries, keys)))


def _split(views: list[Tensor], size: int) -> Iterator[list[Tensor]]:
    return (list(batch) for batch in zip(*(view.split(size) for view in views), strict=True))


def _append(to: dict[int, list[Tensor]], vectors: dict[int, Tensor]) -> None:
    for number, vector in vectors.items():
        to[number].append(vector)
