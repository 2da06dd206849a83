"""I_NCE of the branches of runs: numbers, table and picture."""

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from vantage.measures.information import bound
from vantage.storage.figures import color, panels, set_titles
from vantage.storage.tables import Mean, Row, align

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["BranchInformation", "InformationTable"]


@dataclass(frozen=True)
class BranchInformation:
    """The information that the two views of a branch share, as estimated by its critic."""

    branch: int
    """Number of the branch."""

    pairs: str
    """Which views are paired."""

    estimates: tuple[float, ...]
    """I_NCE of each draw of the views and the negatives, in nats."""

    negatives: int
    """K: the number of negatives of each pair."""

    images: int
    """Number of held-out images; each draw makes one pair from every image."""

    @property
    def nats(self) -> float:
        """Mean of the estimates."""
        return fmean(self.estimates)

    @property
    def deviation(self) -> float:
        """Standard deviation over the draws; 0 for a single one."""
        return Mean.of(self.estimates).bar

    @property
    def bound(self) -> float:
        """log(K + 1) in nats, which no estimate exceeds."""
        return bound(self.negatives)

    def row(self) -> Row:
        """The numbers of the table."""
        about = {"branch": self.branch, "pairs": self.pairs, "negatives": self.negatives, "images": self.images}
        return {**about, "i_nce": self.nats, "deviation": self.deviation, "bound": self.bound}


@dataclass(frozen=True)
class InformationTable:
    """The information that the views of runs share, run by run and branch by branch."""

    runs: tuple[tuple[str, tuple[BranchInformation, ...]], ...]
    """The name of each run, and its branches."""

    def table(self) -> list[Row]:
        """A row for each branch of each run."""
        return [{"run": name, **branch.row()} for name, branches in self.runs for branch in branches]

    def lines(self) -> list[str]:
        """The table as text, with the meaning of its columns."""
        note = "i_nce in nats, by the run's own critic; deviation: over the draws; bound: log(negatives + 1)"
        return [*align(self.table()), note, "on images that a run was trained on, i_nce is too high"]

    def figure(self) -> "Figure":
        """A bar for each branch of each run, with the deviation over the draws, and a mark at its bound."""
        rows = [(name, branch) for name, branches in self.runs for branch in branches]
        figure, axes = panels(1, 1, width=7.0, height=1.0 + 0.3 * len(rows))
        panel, names = axes[0, 0], [name for name, _ in self.runs]
        for place, (name, branch) in enumerate(rows):
            bar, shade = {"linewidth": 1}, color(names.index(name))
            panel.barh(place, branch.nats, xerr=branch.deviation, color=shade, error_kw=bar)
            panel.plot(branch.bound, place, marker="|", markersize=12, color="black")
        panel.set_yticks(range(len(rows)), [f"{name}, branch {branch.branch}" for name, branch in rows], fontsize=8)
        panel.invert_yaxis()
        panel.grid(False, axis="y")
        set_titles(panel, "What the views of an image share (mark: the most that I_NCE can be)", "I_NCE (nats)", "")
        return figure
