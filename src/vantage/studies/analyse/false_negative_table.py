"""Shares of false negatives by encoder and rule: table and picture.

b: queries
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from vantage.storage.figures import color, panels, set_titles
from vantage.storage.tables import Row, align

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["RuleNegatives", "FalseNegativeTable"]


@dataclass(frozen=True)
class RuleNegatives:
    """The negatives that a rule or a sequence of rules chooses with one encoder."""

    encoder: str
    """The encoder."""

    rule: str
    """The rules in words."""

    negatives: float
    """Mean number of negatives per query."""

    same: Float[Tensor, "b"]
    """Share of each query's negatives that are of its class, from 0 to 1; nan if it has no negatives."""

    @property
    def mean(self) -> float | None:
        """Percent of the negatives that are of the query's class, averaged over the queries that have negatives."""
        shares = self.same[~self.same.isnan()]
        return 100 * float(shares.double().mean()) if len(shares) else None

    @property
    def error(self) -> float | None:
        """Standard error of the mean over the queries, in percent; None for a single query."""
        shares = self.same[~self.same.isnan()]
        return round(100 * float(shares.double().std()) / len(shares) ** 0.5, 12) if len(shares) > 1 else None

    def equals(self, other: "RuleNegatives") -> bool:
        """Whether equal rules chose negatives with equal shares for every query."""
        same = (self.encoder, self.rule, self.negatives) == (other.encoder, other.rule, other.negatives)
        return same and self.same.nan_to_num(-1.0).equal(other.same.nan_to_num(-1.0))

    def row(self) -> Row:
        """The numbers of the table."""
        row = {"encoder": self.encoder, "rule": self.rule, "queries": int((~self.same.isnan()).sum())}
        return {**row, "negatives": self.negatives, "false_%": self.mean, "error_%": self.error}


@dataclass(frozen=True)
class FalseNegativeTable:
    """The negatives that every rule chooses, for each encoder."""

    chosen: tuple[RuleNegatives, ...]
    """Encoder by encoder, rule by rule."""

    def table(self) -> list[Row]:
        """A row for each encoder and rule."""
        return [one.row() for one in self.chosen]

    def lines(self) -> list[str]:
        """The table as text, with the meaning of its columns."""
        note = "false %: negatives of the query's class, mean over the queries; error %: its standard error over them"
        return [*align(self.table()), note, "keys of the query's own image take part in ranks, but are not counted"]

    def figure(self) -> "Figure":
        """A panel for each encoder: a bar for each rule, and a line at the share among all keys."""
        encoders = list(dict.fromkeys(one.encoder for one in self.chosen))
        figure, axes = panels(len(encoders), 1, width=7.0, height=0.8 + 0.24 * len(self.chosen) / len(encoders))
        figure.suptitle("False negatives by rule (± standard error over queries; dashed: of all keys)", fontsize=9)
        limit = max((one.mean or 0.0) + (one.error or 0.0) for one in self.chosen) or 1.0
        for number, (encoder, panel) in enumerate(zip(encoders, axes[:, 0], strict=True)):
            rows = [one for one in self.chosen if one.encoder == encoder]
            share, error = [one.mean or 0.0 for one in rows], [one.error or 0.0 for one in rows]
            panel.barh(range(len(rows)), share, xerr=error, color=color(number), error_kw={"linewidth": 1})
            panel.axvline(share[0], color="black", linestyle="--", linewidth=1)
            for place, one in enumerate(rows):
                text = "none" if one.mean is None else f"{one.mean:.1f}"
                panel.text(limit * 1.1, place, text, va="center", ha="right", fontsize=8)
            panel.set_yticks(range(len(rows)), [one.rule for one in rows], fontsize=8)
            panel.invert_yaxis()
            panel.set_xlim(0, limit * 1.12)
            panel.grid(False, axis="y")
            set_titles(panel, encoder, "negatives of the query's class (%)", "")
        return figure
