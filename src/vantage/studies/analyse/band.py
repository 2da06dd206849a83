"""Where the band of a Ring lies: its ranks and percentiles during training, and the cosines at its current cuts.

q: queries   h: bars of a histogram
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.branch import Branch
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks
from vantage.negatives import BandRule
from vantage.records import Keys
from vantage.storage.figures import COLORS, panels, set_titles
from vantage.storage.tables import Row, align
from vantage.studies.analyse.augmentation import draw_numbers
from vantage.studies.analyse.queries import queries, tiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Band", "BandTable", "Cuts", "RunBand", "epoch_rows"]

_BARS = 400
_PRINTED_EPOCHS = 12  # approximate number of epochs in the printed table


@dataclass(frozen=True)
class Cuts:
    """Cosines at the newest checkpoint."""

    outer: Float[Tensor, "q"]
    """Cosine of the least similar negative in each query's band."""

    inner: Float[Tensor, "q"]
    """Cosine of the most similar one."""

    histogram: Float[Tensor, "h"]
    """Histogram over [−1, 1] of the cosines of all pairs of a query and a key that the band chooses from."""


@dataclass(frozen=True)
class RunBand:
    """One band rule of one run."""

    name: str
    """The run, and the branch if the run has several bands."""

    epochs: list[Row]
    """For each epoch: the settings, ranks and percentiles."""

    current_epoch: float
    """Epochs trained so far."""

    cuts: Cuts | None
    """Cosines at the cuts; None if the run has no memory."""


@dataclass(frozen=True)
class Band:
    """Where Ring's band lies (Wu et al., arXiv 2010.02037, section 4), for every rule of a run that keeps a band of
    ranks: `Ring`, `AbsoluteRing`, `Ball`, `Hardest` and `Easiest`.

    For each epoch, from the schedules: keep and drop, the ranks [inner, outer) among the n keys that the previous rules
    leave (the median over the queries), and the percentiles of similarity w_l = 100 (1 − outer/n) and w_u = 100 (1 −
    inner/n). At the newest checkpoint: the cosines at both cuts with the keys in its memory, for the current encoder
    and augmented images. For numbers that adapt to the loss or the accuracy, only past epochs are shown. The images
    must be those that the run was trained on.
    """

    name: ClassVar[str] = "band"

    images: int = 1_024
    """Number of images that queries are made from, drawn without replacement; all if there are fewer."""

    seed: int = 0
    """Seed of the sample of images and of their augmentations."""

    def __post_init__(self) -> None:
        if self.images < 1:
            raise UserError(f"images is {self.images}: give at least 1")

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> "BandTable":
        """The bands of each run. Raises `UserError` if a run has none or was trained on other images, and otherwise
        as `augmented_vectors` does."""
        bands: list[RunBand] = []
        for model in runs:
            places = [(n, p) for n, b in enumerate(model.branches) for p, r in enumerate(b.negatives) if _is_band(r)]
            if not places:
                raise UserError(
                    f"{model.name} has no band: none of its rules is a Ring, AbsoluteRing, Ball or the like"
                )
            images = model.trained_on(source)
            image = draw_numbers(len(images), self.images, self.seed)
            query_of = cache(partial(queries, model, images, image, seed=self.seed, work=work))
            for branch, place in places:
                name = model.name if len(places) == 1 else f"{model.name}, branch {branch}"
                keys, cuts = _cuts(model, branch, place, query_of)
                bands.append(RunBand(name, epoch_rows(model, branch, place, keys), model.epochs, cuts))
        return BandTable(tuple(bands))


def _cuts(model: TrainedNetworks, number: int, place: int, query_of: Callable[[int], Keys]) -> tuple[int, Cuts | None]:
    """The number of keys that the band is chosen from, and the cosines with the queries of a view."""
    branch: Branch = model.branches[number]
    if not len(model.pool(number)):
        return model.run.batch_size * len(branch.pool_views), None
    query, pool, rule = query_of(branch.query), model.pool(number), branch.negatives[place]
    counts, outer, inner, histogram = [], [], [], torch.zeros(_BARS)
    for query_part, scores in tiles(query, pool, branch.negatives[:place], model.step):
        counts.append(scores.keep.expand_as(scores.cosine).sum(1).cpu())
        histogram += torch.histc(scores.cosine[scores.keep.expand_as(scores.cosine)].float(), _BARS, -1, 1).cpu()
        band = rule(scores, query_part, pool, model.step)
        has_band = band.keep.any(1)
        outer.append(band.cosine.masked_fill(~band.keep, torch.inf).amin(1)[has_band])
        inner.append(band.cosine.masked_fill(~band.keep, -torch.inf).amax(1)[has_band])
    return int(torch.cat(counts).median()), Cuts(torch.cat(outer).cpu(), torch.cat(inner).cpu(), histogram)


def epoch_rows(model: TrainedNetworks, branch: int, place: int, keys: int) -> list[Row]:
    """Where a rule's band lies among `keys` keys in each epoch, from the start to the end of the run."""
    rows: list[Row] = []
    for epoch in range(model.run.epochs + 1):
        branches = model.branches_after(epoch)
        if branches is None:  # a schedule that adapts is unknown for future epochs
            continue
        rule, step = branches[branch].negatives[place], epoch * model.steps_per_epoch
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
class BandTable:
    """The bands of all runs."""

    bands: tuple[RunBand, ...]
    """One for each run and band rule."""

    def table(self) -> list[Row]:
        """A row for each band and epoch, then one for each band and cut with its cosines over the queries."""
        return [*self._epoch_rows(), *self._cosine_rows()]

    def lines(self) -> list[str]:
        """Some of the epochs, and the cosines, as text."""
        rows = []
        for band in self.bands:
            printed_epochs = {
                round(n * (len(band.epochs) - 1) / (_PRINTED_EPOCHS - 1)) for n in range(_PRINTED_EPOCHS)
            } | {round(band.current_epoch)}
            rows += [{"band": band.name, **row} for number, row in enumerate(band.epochs) if number in printed_epochs]
        note = "w_l, w_u: percentiles of similarity between which the negatives lie, by schedule"
        cosines = self._cosine_rows()
        return [*align(rows), note, *([""] if cosines else []), *align(cosines)]

    def figure(self) -> "Figure":
        """For each band, the percentiles by epoch and the cuts within the distribution of all cosines."""
        figure, axes = panels(len(self.bands), 2, height=3.0)
        for band, (schedule_panel, cosine_panel) in zip(self.bands, axes, strict=True):
            epochs, lower, upper = ([row[key] for row in band.epochs] for key in ("epoch", "w_l", "w_u"))
            schedule_panel.fill_between(epochs, lower, upper, color=COLORS[0], alpha=0.3, label="negatives")
            for edge, word, style in ((upper, "$w_u$: inner cut", "-"), (lower, r"$w_\ell$: outer cut", "--")):
                schedule_panel.plot(epochs, edge, style, color=COLORS[0], linewidth=1.4, label=word)
            schedule_panel.axvline(
                band.current_epoch, color="black", linestyle=":", linewidth=1.2, label="newest checkpoint"
            )
            schedule_panel.set_ylim(0, 102)
            schedule_panel.locator_params(axis="x", integer=True)
            schedule_panel.legend(fontsize=7, loc="best")
            set_titles(schedule_panel, f"{band.name}: band by schedule", "epoch", "percentile of similarity (%)")
            _draw_cosines(cosine_panel, band)
        return figure

    def _epoch_rows(self) -> list[Row]:
        return [{"band": band.name, **row} for band in self.bands for row in band.epochs]

    def _cosine_rows(self) -> list[Row]:
        shares = {"5%": 0.05, "25%": 0.25, "median": 0.5, "75%": 0.75, "95%": 0.95}
        rows: list[Row] = []
        for band in self.bands:
            for cut, value in (("outer", band.cuts.outer), ("inner", band.cuts.inner)) if band.cuts else ():
                spread = {name: float(value.double().quantile(share)) for name, share in shares.items()}
                rows.append({"band": band.name, "cosine_at": f"{cut} cut", "queries": len(value), **spread})
        return rows


def _draw_cosines(panel: Any, band: RunBand) -> None:
    set_titles(panel, f"Cosines at epoch {band.current_epoch:.4g}", "cosine of query and key", "share of pairs (%)")
    if band.cuts is None:
        panel.text(0.5, 0.5, "no keys are remembered", ha="center", transform=panel.transAxes)
        return
    share = (100 * band.cuts.histogram / band.cuts.histogram.sum()).tolist()
    edges = torch.linspace(-1, 1, len(share) + 1).tolist()
    panel.stairs(share, edges, fill=True, color="#bbbbbb", label="all keys")
    for value, number, word in ((band.cuts.outer, 1, "outer cut"), (band.cuts.inner, 2, "inner cut")):
        low, middle, high = value.double().quantile(torch.tensor([0.05, 0.5, 0.95], dtype=torch.float64)).tolist()
        panel.axvspan(low, high, color=COLORS[number], alpha=0.25, linewidth=0)
        panel.axvline(middle, color=COLORS[number], linewidth=1.6, label=f"{word}: median, 5–95 % of queries")
    nonempty = [n for n, part in enumerate(share) if part]
    panel.set_xlim(edges[max(0, nonempty[0] - 2)], edges[min(len(share), nonempty[-1] + 3)])
    panel.legend(fontsize=7)
