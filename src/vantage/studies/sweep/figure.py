"""The figure of a sweep: accuracy and I_NCE against what is varied, and accuracy against I_NCE."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from vantage.facts.results import RANDOM_ENCODER, RAW_PIXELS
from vantage.storage.figures import color, panels, picture, scale_axis, set_titles
from vantage.storage.files import write_result
from vantage.storage.tables import Mean
from vantage.studies.sweep.result import SweepResult

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["sweep_figure", "write_sweep"]

# Offsets and alignments of labels, used in turn so that neighbors do not collide.
_CORNERS = ((-6, 5, "right"), (6, 5, "left"), (6, -12, "left"), (-6, -12, "right"))
_STYLES = {RAW_PIXELS: ":", RANDOM_ENCODER: "--"}


def sweep_figure(result: SweepResult) -> "Figure":
    """The figure, in three panels: small points are seeds, large points their means, bars their standard deviations.
    Without I_NCE there is only the first panel, accuracy."""
    figure, axes = panels(1, 3 if result.measures_information else 1, width=4.4, height=3.6)
    first, *others = axes[0]
    protocol = result.protocols[0]
    positions = _positions(result)
    accuracies = [result.accuracy(label, protocol) for label in positions]
    seeds = [[row.accuracy[protocol] for row in result.of(label)] for label in positions]
    _points(first, result, positions, accuracies, seeds, color(0))
    _baselines(first, result, protocol, positions)
    set_titles(first, "accuracy", result.axis, f"{protocol} accuracy (%)")
    if others:
        second, third = others
        information = [result.i_nce(label) for label in positions]
        shared = [[row.i_nce for row in result.of(label)] for label in positions]
        _points(second, result, positions, information, shared, color(1))
        bound = f"what the views share (K = {result.negatives:,}: at most {result.bound:.2f} nats)"
        set_titles(second, bound, result.axis, "I_NCE on held-out images (nats)")
        _against_each_other(third, result, list(positions), information, accuracies)
    counts = sorted({len(result.of(label)) for label in result.labels})  # some runs may still be missing
    number = f"{' or '.join(map(str, counts))} seed{'s' * (counts[-1] > 1)}"
    figure.suptitle(f"{result.axis}: {number}, mean ± standard deviation", fontsize=9)
    return figure


def write_sweep(result: SweepResult, folder: Path | str) -> list[Path]:
    """Write the table as Markdown and CSV and the figure as PNG and SVG, each whole or not at all; returns their paths.

    Raises `UserError` if they cannot be written.
    """
    figure, folder = sweep_figure(result), Path(folder)
    contents = {"md": result.markdown(), "csv": result.csv()} | {kind: picture(figure, kind) for kind in ("png", "svg")}
    for kind, content in contents.items():
        write_result(folder / f"{result.name}.{kind}", content, "the result")
    return [folder / f"{result.name}.{kind}" for kind in contents]


def _points(
    panel: Any, result: SweepResult, positions: dict[str, float], means: list[Mean], values: list[list[Any]], tint: str
) -> None:
    """What was measured with each seed, and its means, at the position of each value."""
    for at, seeds in zip(positions.values(), values, strict=True):
        panel.plot([at] * len(seeds), seeds, ".", color=tint, alpha=0.35, markersize=5)
    _bars(panel, list(positions.values()), None, means, tint, "-" if _has_numbers(result) else "")
    _ticks(panel, positions)


def _against_each_other(
    panel: Any, result: SweepResult, labels: list[str], information: list[Mean], accuracies: list[Mean]
) -> None:
    """Accuracy against I_NCE, with a label at each mean."""
    protocol = result.protocols[0]
    for label in labels:
        rows = result.of(label)
        panel.plot([r.i_nce for r in rows], [r.accuracy[protocol] for r in rows], ".", color=color(2), alpha=0.35)
    by_information = sorted(zip(information, accuracies, labels, strict=True), key=lambda each: each[0].mean)
    for number, (x, y, label) in enumerate(by_information):
        across, up, side = _CORNERS[number % len(_CORNERS)]
        panel.annotate(label, (x.mean, y.mean), (across, up), textcoords="offset points", fontsize=8, ha=side)
    if _has_numbers(result):
        panel.plot([x.mean for x in information], [y.mean for y in accuracies], "-", color=color(2), alpha=0.5)
    for x, y in zip(information, accuracies, strict=True):
        _bars(panel, [x.mean], [x.bar], [y], color(2), "")
    panel.margins(0.15)
    set_titles(panel, "one against the other", "I_NCE on held-out images (nats)", f"{protocol} accuracy (%)")


def _bars(panel: Any, across: list[float], spread: list[float] | None, means: list[Mean], tint: str, line: str) -> None:
    panel.errorbar(
        across, [m.mean for m in means], [m.bar for m in means], spread, fmt="o" + line, color=tint,
        markersize=5, capsize=3, linewidth=1.2,
    )  # fmt: skip


def _has_numbers(result: SweepResult) -> bool:
    """Whether the values are numbers, so that a line may connect them."""
    return all(row.number is not None for row in result.rows)


def _positions(result: SweepResult) -> dict[str, float]:
    """The position of each value along the axis, from left to right: its number, or its place in the order."""
    numbers = {label: result.of(label)[0].number for label in result.labels}
    positions = {label: number for label, number in numbers.items() if number is not None and label == f"{number:g}"}
    if len(positions) < len(numbers):
        return {label: float(place) for place, label in enumerate(numbers)}
    return dict(sorted(positions.items(), key=lambda each: each[1]))


def _ticks(panel: Any, positions: dict[str, float]) -> None:
    """A tick for each value; the axis is logarithmic if the values are above 0 and span more than a factor of ten."""
    places = list(positions.values())
    if min(places) > 0:
        scale_axis(panel, places)
    long = max(map(len, positions)) > 5
    rotation = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if long else {}
    panel.set_xticks(places, list(positions), fontsize=8, **rotation)


def _baselines(panel: Any, result: SweepResult, protocol: str, positions: dict[str, float]) -> None:
    """A horizontal line for a baseline that is the same for all values, otherwise short marks at each value."""
    for name, style in _STYLES.items():
        means = {at: result.baseline(name, label, protocol) for label, at in positions.items()}
        heights = [(at, mean.mean) for at, mean in means.items() if mean]
        if not heights:
            continue
        if result.is_shared(name):
            panel.axhline(heights[0][1], color="black", linestyle=style, linewidth=1, label=name)
        else:
            marker = "_" if name == RAW_PIXELS else "x"
            panel.plot(*zip(*heights, strict=True), marker, color="black", markersize=7, label=name)
    if panel.get_legend_handles_labels()[0]:
        panel.legend(fontsize=7, frameon=False)
