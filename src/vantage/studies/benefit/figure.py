"""The picture: accuracy against the number of labels, and what pretraining adds."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vantage.storage.figures import color, panels, picture, set_titles
from vantage.storage.files import write_result
from vantage.studies.benefit.result import BenefitResult, Gap
from vantage.studies.benefit.verdict import markdown
from vantage.studies.benefit.ways import SCRATCH, TUNED, is_pretrained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["benefit_figure", "write_benefit"]


def benefit_figure(result: BenefitResult) -> "Figure":
    """Two panels over the number of labels: the accuracy of every way, and how far fine-tuning is above training from
    scratch. Bars are 95 % intervals, over seeds and test images."""
    figure, axes = panels(1, 2, width=4.8, height=4.2)
    first, second = axes[0]
    labels = result.labels
    for number, way in enumerate(result.ways):
        bars = [Gap.of(result.points(way, one)) for one in labels]
        line = "-" if is_pretrained(way) else "--"
        _bars(first, _aside(labels, number, len(result.ways)), bars, color(number), line, way)
    bottom, top = first.get_ylim()
    first.set_ylim(max(0, bottom), min(102, top))  # an interval may go beyond 100 %, accuracy may not
    figure.legend(loc="outside lower center", ncols=min(4, len(result.ways)), fontsize=8, frameon=False)
    gaps = [result.gap(TUNED, SCRATCH, one) for one in labels]
    second.axhline(0, color="black", linewidth=0.8)
    _bars(second, list(map(float, labels)), gaps, color(0), "-", "")
    for panel in (first, second):
        panel.set_xscale("log")
        words = [f"{one:,}\n{100 * result.share(one):g} %" for one in labels]
        panel.set_xticks(labels, words, fontsize=7)
        panel.minorticks_off()
        panel.margins(x=0.06)  # no bar at the edge is cut
    set_titles(first, "with pretraining and without", "labels", "top-1 on the test images (%)")
    set_titles(second, f"{TUNED} − {SCRATCH}", "labels", "points of accuracy")
    seeds = len({cell.seed for cell in result.classifiers})
    figure.suptitle(f"mean of {seeds} seeds, 95 % intervals; {result.images.test:,} test images", fontsize=9)
    return figure


def write_benefit(result: BenefitResult, folder: Path | str) -> list[Path]:
    """Write the verdict with its table as Markdown, all results as CSV and the picture as PNG; returns their paths.

    Raises `UserError` if they cannot be written.
    """
    folder = Path(folder)
    contents = {"md": markdown(result), "csv": result.csv(), "png": picture(benefit_figure(result), "png")}
    for kind, content in contents.items():
        write_result(folder / f"benefit.{kind}", content, "the result")
    return [folder / f"benefit.{kind}" for kind in contents]


def _aside(labels: list[int], number: int, count: int) -> list[float]:
    """Positions slightly offset from the numbers of labels, so that bars do not hide each other."""
    return [one * 1.03 ** (number - (count - 1) / 2) for one in labels]


def _bars(panel: Any, across: list[float], bars: list[Gap], tint: str, line: str, name: str) -> None:
    means = [bar.mean for bar in bars]
    spread = [[bar.mean - bar.low for bar in bars], [bar.high - bar.mean for bar in bars]]
    panel.errorbar(
        across, means, spread, fmt="o" + line, color=tint, markersize=3.5, capsize=2, linewidth=1.3, label=name
    )
