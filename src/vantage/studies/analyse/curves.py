"""Estimates of mutual information whose exact value is known: table and picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vantage.storage.figures import color, legend_name, panels
from vantage.storage.tables import Mean, Row, align

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["EstimateCurve", "EstimateCurves"]


@dataclass(frozen=True)
class EstimateCurve:
    """Estimates of one kind by percentile, over repetitions."""

    name: str
    """Name of the curve, such as the pairs that are estimated on."""

    points: tuple[Mean, ...]
    """Estimate in nats for each percentile, over the repetitions."""

    @classmethod
    def of(cls, name: str, estimates: Sequence[Sequence[float]]) -> "EstimateCurve":
        """The curve from the estimates of each repetition, in the order of the percentiles."""
        return cls(name, tuple(map(Mean.of, zip(*estimates, strict=True))))

    @property
    def mean(self) -> tuple[float, ...]:
        """Mean estimate in nats for each percentile."""
        return tuple(one.mean for one in self.points)


@dataclass(frozen=True)
class EstimateCurves:
    """Estimates of mutual information with a known value, by the percentile w_ℓ of the negatives."""

    title: str
    """What was estimated, and how."""

    information: float
    """Its true value, in nats."""

    lower: tuple[float, ...]
    """Percentiles w_ℓ; 0 is NCE."""

    curves: tuple[EstimateCurve, ...]
    """The curves of estimates."""

    def table(self) -> list[Row]:
        """A row for each percentile: mean and deviation of each curve."""
        rows = []
        for index, lower in enumerate(self.lower):
            row: dict[str, str | int | float | None] = {"w_l": lower}
            for curve in self.curves:
                row[curve.name] = curve.points[index].mean
                row[f"{curve.name} ±"] = curve.points[index].bar
            rows.append(row)
        return rows

    def lines(self) -> list[str]:
        """The table as text, in nats."""
        rows: list[Row] = []
        for index, lower in enumerate(self.lower):
            cells = {curve.name: curve.points[index].words(5, "+") for curve in self.curves}
            rows.append({"w_l": f"{lower:g}" if lower else "0 (NCE)", **cells})
        return [f"{self.title}, in nats (exact: {self.information:.6f})", *align(rows)]

    def figure(self) -> "Figure":
        """The estimates by percentile, and the exact value as a line."""
        figure, axes = panels(1, 1)
        panel = axes[0, 0]
        panel.axhline(self.information, color="black", linewidth=1, linestyle="--", label="exact")
        for number, curve in enumerate(self.curves):
            panel.errorbar(
                self.lower, curve.mean, [one.bar for one in curve.points], color=color(number), marker="o",
                markersize=4, capsize=3, linewidth=1.4, label=legend_name(curve.name),
            )  # fmt: skip
        panel.set_xlim(-3, 100)
        panel.set_title(self.title, fontsize=9)
        panel.set_xlabel("percentile $w_\\ell$ above which negatives lie (0 is NCE)", fontsize=8)
        panel.set_ylabel("estimate (nats)", fontsize=8)
        panel.legend(fontsize=7, frameon=False)
        return figure
