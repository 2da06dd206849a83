"""Bias and variance of NCE and CNCE, by number and percentile of the negatives (arXiv 2010.02037, Theorem 3.2).

Z is the estimate for one pair (u, v₁) with its negatives. The theorem is about the variance over the negatives of one
pair, which falls as the percentile w_ℓ rises. The total variance, over pairs as well, need not fall with it; in the
Gaussian toy it rises.

b: pairs   r: draws of all negatives of a pair
"""

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.errors import UserError
from vantage.measures.information import nce, percentiles
from vantage.negatives import Sample
from vantage.partition import negatives_of
from vantage.records import Keys
from vantage.storage.figures import color, panels
from vantage.storage.tables import Row, align
from vantage.studies.analyse.gaussian import Gaussian

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Spread", "SpreadRow", "SpreadToy", "estimates_by_count"]

_AT_ONCE = 2**22  # negatives scored at once


@dataclass(frozen=True)
class SpreadRow:
    """Bias and variances of estimates with a certain number of negatives from above a certain percentile."""

    lower: float
    """Percentile w_ℓ above which negatives lie; 0 is NCE."""

    negatives: int
    """Number of negatives of each pair, k."""

    bias: float
    """Mean estimate minus the information, in nats."""

    conditional: float
    """Variance over the negatives of one pair, averaged over pairs, in nats²."""

    total: float
    """Variance over pairs and negatives, in nats²."""


@dataclass(frozen=True)
class Spread:
    """Bias and variances by percentile and number of negatives."""

    information: float
    """The estimated quantity, in nats."""

    rows: tuple[SpreadRow, ...]
    """A row for each percentile and number of negatives."""

    def table(self) -> list[Row]:
        """The rows as plain values."""
        return [dict(zip(_HEADS, astuple(row), strict=True)) for row in self.rows]

    def lines(self) -> list[str]:
        """The table as text."""
        rows: list[Row] = [
            {"w_l": f"{row.lower:g}" if row.lower else "0 (NCE)", "negatives": row.negatives}
            | {"bias": f"{row.bias:+.5f}", "variance given the pair": f"{row.conditional:.2e}"}
            | {"variance": f"{row.total:.3e}"}
            for row in self.rows
        ]
        return [f"estimates of {self.information:.6f} nats; variances in nats²", *align(rows)]

    def figure(self) -> "Figure":
        """Bias, variance over negatives, and total variance, by the number of negatives."""
        figure, axes = panels(1, 3)
        for number, lower in enumerate(sorted({row.lower for row in self.rows})):
            rows = [row for row in self.rows if row.lower == lower]
            x = [row.negatives for row in rows]
            lines = [row.bias for row in rows], [row.conditional for row in rows], [row.total for row in rows]
            for panel, y in zip(axes[0], lines, strict=True):
                panel.plot(x, y, color=color(number), marker="o", markersize=4, label=f"$w_\\ell$ = {lower:g}")
        titles = "bias (nats)", "variance over negatives of one pair (nats²)", "variance over everything (nats²)"
        for panel, title in zip(axes[0], titles, strict=True):
            panel.set_xscale("log", base=2)
            panel.set_title(title, fontsize=9)
            panel.set_xlabel("negatives", fontsize=8)
        axes[0, 1].set_yscale("log")
        axes[0, 1].legend(fontsize=7, frameon=False, loc="lower left")
        return figure


@dataclass(frozen=True)
class SpreadToy:
    """Bias and variances of NCE and CNCE against the number of negatives k, in the Gaussian toy with the optimal critic
    (arXiv 2010.02037, Theorem 3.2).

    The paper measures them on images, where the information is unknown. The bias is the mean of Z − log p(y|x)/p(y);
    the mean of its second term is the information, so the draw of the pairs hardly matters.
    """

    name: ClassVar[str] = "spread-toy"

    gaussian: Gaussian = Gaussian()
    """The distribution."""

    lower: tuple[float, ...] = (0.0, 50.0, 90.0)
    """Percentiles w_ℓ; 0 is NCE."""

    negatives: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024, 4096)
    """Numbers of negatives."""

    pairs: int = 500
    """Number of pairs."""

    draws: int = 16
    """Number of times that each pair's negatives are drawn."""

    pool: int = 8_192
    """Size of the pool of numbers y that negatives are drawn from and that defines the percentiles; independent of the
    pairs."""

    seed: int = 0
    """Seed of pairs, pool and draws."""

    def __post_init__(self) -> None:
        if min(self.draws, self.pairs) < 2 or min(self.negatives, default=0) < 1 or not self.lower or self.pool < 1:
            raise UserError(
                f"variances of {self.pairs} pairs with {self.draws} draws of {self.negatives} negatives from a pool of"
                f" {self.pool}, above the percentiles {self.lower}: give at least 2 pairs, 2 draws, 1 negative, a pool"
                " of 1 and 1 percentile"
            )

    def __call__(self) -> Spread:
        """The table and the picture."""
        x, y = self.gaussian.pairs(self.pairs, 2 * self.seed)
        _, pool = self.gaussian.pairs(self.pool, 2 * self.seed + 1)
        query, keys, truth = self.gaussian.queries(x, self.seed), self.gaussian.keys(pool), self.gaussian.critic(x, y)
        rows = []
        for lower in self.lower:
            estimates = estimates_by_count(truth, query, keys, lower, self.negatives, self.draws)
            for negatives, estimate in zip(self.negatives, estimates, strict=True):
                rows.append(_row(lower, negatives, estimate, truth))
        return Spread(self.gaussian.information, tuple(rows))


def estimates_by_count(
    positive: Float[Tensor, "b"],
    query: Keys,
    pool: Keys,
    lower: float,
    negatives: tuple[int, ...],
    times: int,
) -> list[Float[Tensor, "b r"]]:
    """Estimates for each pair and each number of negatives, which are drawn `times` times from the pool above w_ℓ.

    Smaller sets of negatives are the first elements of larger ones, so that different numbers of negatives are compared
    on the same draw. The critic is q·k, and `positive` holds its values at the pairs.
    """
    most = max(negatives)
    rules = (*percentiles(lower), Sample(times * most))
    rows = max(1, _AT_ONCE // (times * most))
    tiles: list[list[Tensor]] = [[] for _ in negatives]
    for start in range(0, len(query), rows):
        part = slice(start, start + rows)
        logits = negatives_of(query.rows(part), pool, rules, 0).logits(1.0).view(-1, times, most)
        for count, tile in zip(negatives, tiles, strict=True):
            flat = logits[:, :, :count].reshape(-1, count)
            tile.append(nce(positive[part].repeat_interleave(times), flat).view(-1, times))
    return [torch.cat(tile) for tile in tiles]


_HEADS = ("w_l", "negatives", "bias", "conditional_variance", "total_variance")


def _row(lower: float, negatives: int, estimate: Float[Tensor, "b r"], truth: Float[Tensor, "b"]) -> SpreadRow:
    bias = float((estimate - truth[:, None]).mean())
    return SpreadRow(lower, negatives, bias, float(estimate.var(1).mean()), float(estimate.var()))
