"""Where the band of a Ring lies: its ranks and percentiles over training, and the cosines at its cuts now.

q: queries   h: bars of a histogram
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.branch import Branch
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.negatives import BandRule
from vantage.storage.figures import COLORS, panels, titled
from vantage.storage.tables import Row, aligned
from vantage.studies.analyse.augmentation import draw_numbers
from vantage.studies.analyse.networks import TrainedNetworks
from vantage.studies.analyse.queries import queries, tiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Band", "Bands", "Cuts", "OneBand", "course"]

_BARS = 400
_TOLD = 12  # epochs in the printed table, about


@dataclass(frozen=True)
class Cuts:
    """Cosines at the newest checkpoint."""

    outer: Float[Tensor, "q"]
    """The least similar negative of each query's band."""

    inner: Float[Tensor, "q"]
    """The most similar one."""

    all: Float[Tensor, "h"]
    """How many pairs of a query and a key that the band chooses from lie in each of the equal parts of [−1, 1]."""


@dataclass(frozen=True)
class OneBand:
    """One band rule of one run."""

    name: str
    """The run; where it has several bands, with the branch."""

    epochs: list[Row]
    """Epoch by epoch: the settings, ranks and percentiles."""

    now: float
    """Epochs trained so far."""

    cuts: Cuts | None
    """Cosines at the cuts; none where the run remembers no keys."""


@dataclass(frozen=True)
class Band:
    """Where Ring's band lies (Wu et al., arXiv 2010.02037, section 4), for every rule of a run that keeps a band of
    ranks: `Ring`, `AbsoluteRing`, `Ball`, and `Hardest` and `Easiest` too.

    Over the epochs, by the schedules alone: keep and drop, the ranks [inner, outer) of the n keys that the rules before
    leave (the median over the queries), and the percentiles of similarity w_l = 100 (1 − outer/n) and w_u = 100 (1 −
    inner/n). At the newest checkpoint: the cosines at both cuts with the keys that its memory holds, for the present
    encoder and augmented images. For numbers that adapt to the loss or the accuracy, only past epochs are shown. The
    images must be those that the run was trained on.
    """

    name: ClassVar[str] = "band"

    images: int = 1_024
    """Images that queries are made of, drawn without replacement; all where there are fewer."""

    seed: int = 0
    """Decides which images and augmentations are drawn."""

    def __post_init__(self) -> None:
        if self.images < 1:
            raise UserError(f"images is {self.images}: give at least 1")

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> "Bands":
        """The bands of each run. Raises `UserError` where a run has none or was trained on other images, else as
        `augmented_vectors`."""
        bands: list[OneBand] = []
        for one in runs:
            places = [(n, p) for n, b in enumerate(one.branches) for p, r in enumerate(b.negatives) if _is_band(r)]
            if not places:
                raise UserError(f"{one.name} has no band: none of its rules is a Ring, AbsoluteRing, Ball or the like")
            own = one.trained_on(source)
            for branch, place in places:
                name = one.name if len(places) == 1 else f"{one.name}, branch {branch}"
                keys, cuts = self._cuts(one, branch, place, own, work)
                bands.append(OneBand(name, course(one, branch, place, keys), one.epochs, cuts))
        return Bands(tuple(bands))

    def _cuts(
        self, one: TrainedNetworks, number: int, place: int, source: Source, work: Work
    ) -> tuple[int, Cuts | None]:
        """How many keys the band is chosen from, and the cosines."""
        branch: Branch = one.branches[number]
        if not len(one.pool(number)):
            return one.run.batch_size * len(branch.pooled), None
        image = draw_numbers(len(source), self.images, self.seed)
        query = queries(one, source, image, branch.query, self.seed, work)
        pool, rule = one.pool(number), branch.negatives[place]
        counts, outer, inner, every = [], [], [], torch.zeros(_BARS)
        for some, scores in tiles(query, pool, branch.negatives[:place], one.step):
            counts.append(scores.keep.expand_as(scores.cosine).sum(1).cpu())
            every += torch.histc(scores.cosine[scores.keep.expand_as(scores.cosine)].float(), _BARS, -1, 1).cpu()
            band = rule(scores, some, pool, one.step)
            asks = band.keep.any(1)
            outer.append(band.cosine.masked_fill(~band.keep, torch.inf).amin(1)[asks])
            inner.append(band.cosine.masked_fill(~band.keep, -torch.inf).amax(1)[asks])
        return int(torch.cat(counts).median()), Cuts(torch.cat(outer).cpu(), torch.cat(inner).cpu(), every)


def course(one: TrainedNetworks, branch: int, place: int, keys: int) -> list[Row]:
    """Epoch by epoch, from the start to the end of the run, where a rule's band lies among `keys` keys."""
    rows: list[Row] = []
    for epoch in range(one.run.epochs + 1):
        branches = one.branches_after(epoch)
        if branches is None:  # a number that adapts, and an epoch yet to come
            continue
        rule, step = branches[branch].negatives[place], epoch * one.steps_per_epoch
        assert isinstance(rule, BandRule)
        inner, outer = (int(rank) for rank in rule.ranks(torch.tensor([keys]), step))
        rows.append(
            {
                "epoch": epoch,
                "keep": _setting(rule, "keep", step),
                "drop": _setting(rule, "drop", step),
                "keys": keys,
                "inner_rank": inner,
                "outer_rank": outer,
                "w_l": 100 * (1 - outer / keys),
                "w_u": 100 * (1 - inner / keys),
            }
        )
    return rows


def _is_band(rule: object) -> bool:
    return isinstance(rule, BandRule)


def _setting(rule: BandRule, field: str, step: int) -> float | None:
    schedule = getattr(rule, field, None)
    return None if schedule is None else float(schedule(step))


@dataclass(frozen=True)
class Bands:
    """The bands of all runs."""

    bands: tuple[OneBand, ...]
    """One for each run and band rule."""

    def table(self) -> list[Row]:
        """A row for each band and epoch, then one for each band and cut: its cosine over the queries."""
        return [*self._courses(), *self._cosines()]

    def lines(self) -> list[str]:
        """Some of the epochs, and the cosines, for people."""
        rows = []
        for one in self.bands:
            some = {round(n * (len(one.epochs) - 1) / (_TOLD - 1)) for n in range(_TOLD)} | {round(one.now)}
            rows += [{"band": one.name, **row} for number, row in enumerate(one.epochs) if number in some]
        note = "w_l, w_u: percentiles of similarity between which the negatives lie, by schedule"
        cosines = self._cosines()
        return [*aligned(rows), note, *([""] if cosines else []), *aligned(cosines)]

    def figure(self) -> "Figure":
        """For each band the percentiles by epoch, and the cuts among all cosines."""
        figure, axes = panels(len(self.bands), 2, height=3.0)
        for one, (course_panel, cosine_panel) in zip(self.bands, axes, strict=True):
            epochs, lower, upper = ([row[key] for row in one.epochs] for key in ("epoch", "w_l", "w_u"))
            course_panel.fill_between(epochs, lower, upper, color=COLORS[0], alpha=0.3, label="negatives")
            for edge, word, style in ((upper, "$w_u$: inner cut", "-"), (lower, r"$w_\ell$: outer cut", "--")):
                course_panel.plot(epochs, edge, style, color=COLORS[0], linewidth=1.4, label=word)
            course_panel.axvline(one.now, color="black", linestyle=":", linewidth=1.2, label="newest checkpoint")
            course_panel.set_ylim(0, 102)
            course_panel.locator_params(axis="x", integer=True)
            course_panel.legend(fontsize=7, loc="best")
            titled(course_panel, f"{one.name}: band by schedule", "epoch", "percentile of similarity (%)")
            _draw_cosines(cosine_panel, one)
        return figure

    def _courses(self) -> list[Row]:
        return [{"band": one.name, **row} for one in self.bands for row in one.epochs]

    def _cosines(self) -> list[Row]:
        at = {"5%": 0.05, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95}
        rows: list[Row] = []
        for one in self.bands:
            for cut, value in (("outer", one.cuts.outer), ("inner", one.cuts.inner)) if one.cuts else ():
                spread = {name: float(value.double().quantile(share)) for name, share in at.items()}
                rows.append({"band": one.name, "cosine_at": f"{cut} cut", "queries": len(value), **spread})
        return rows


def _draw_cosines(panel: Any, one: OneBand) -> None:
    titled(panel, f"Cosines at epoch {one.now:.4g}", "cosine of query and key", "share of pairs (%)")
    if one.cuts is None:
        panel.text(0.5, 0.5, "no keys are remembered", ha="center", transform=panel.transAxes)
        return
    share = (100 * one.cuts.all / one.cuts.all.sum()).tolist()
    edges = torch.linspace(-1, 1, len(share) + 1).tolist()
    panel.stairs(share, edges, fill=True, color="#bbbbbb", label="all keys")
    for value, number, word in ((one.cuts.outer, 1, "outer cut"), (one.cuts.inner, 2, "inner cut")):
        low, middle, high = value.double().quantile(torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64)).tolist()
        panel.axvspan(low, high, color=COLORS[number], alpha=0.25, linewidth=0)
        panel.axvline(middle, color=COLORS[number], linewidth=1.6, label=f"{word}: median, 5–95 % of queries")
    filled = [n for n, part in enumerate(share) if part]
    panel.set_xlim(edges[max(0, filled[0] - 2)], edges[min(len(share), filled[-1] + 3)])
    panel.legend(fontsize=7)
