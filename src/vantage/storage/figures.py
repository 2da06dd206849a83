"""Figures without a window system, in one style. matplotlib is imported only when a picture is drawn."""

import hashlib
import re
from collections.abc import Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLORS", "color", "legend_name", "panels", "picture", "scale_axis", "set_titles"]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colors that people with color blindness can distinguish (Okabe & Ito)."""

_LINE = 40
"""Most letters of a name on one line of a legend."""


def color(number: int) -> str:
    """The color of a curve by its number; colors repeat after the last."""
    return COLORS[number % len(COLORS)]


def legend_name(name: str) -> str:
    """A name for a legend. Matplotlib leaves out empty names and those that begin with an underscore, as a folder's
    may. A long one, such as a path, takes several lines, or the legend would leave no room for the panel."""
    shown = f" {name}" if not name or name.startswith("_") else name
    return "\n".join(shown[start : start + _LINE] for start in range(0, len(shown), _LINE))


def panels(rows: int, columns: int, width: float = 4.6, height: float = 3.4) -> tuple["Figure", Any]:
    """A figure of rows × columns panels of `width` × `height` inches each, and the panels as an array [row, column]."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), dpi=150, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for panel in axes.flat:
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(True, color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
        panel.tick_params(labelsize=8)
    return figure, axes


def set_titles(panel: Any, title: str, x_label: str, y_label: str) -> None:
    """The title of a panel and the labels of its axes."""
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(x_label, fontsize=9)
    panel.set_ylabel(y_label, fontsize=9)


def scale_axis(panel: Any, numbers: Sequence[float]) -> None:
    """Choose the scale of a panel's horizontal axis: logarithmic if the numbers above 0 differ by a factor of more than
    ten, and then linear below the smallest of them if 0 occurs too. With negative numbers, it stays linear."""
    from matplotlib.ticker import NullLocator

    above = [number for number in numbers if number > 0]
    if min(numbers) < 0 or not above or max(above) / min(above) <= 10:
        return
    if len(above) == len(numbers):
        panel.set_xscale("log")
    else:
        panel.set_xscale("symlog", linthresh=min(above), linscale=0.5)
    panel.xaxis.set_minor_locator(NullLocator())


def picture(figure: "Figure", kind: str, description: str = "") -> bytes:
    """A figure as the bytes of a png, svg or pdf file. Files hold no date and no random names, so the same figure gives
    the same bytes. `description` says in words what it shows; an SVG holds it."""
    from matplotlib import rc_context

    metadata: dict[str, dict[str, str | None]] = {
        "svg": {"Date": None} | ({"Description": description} if description else {}),
        "pdf": {"CreationDate": None},
    }
    content = BytesIO()
    with rc_context({"svg.hashsalt": "vantage"}):
        figure.savefig(content, format=kind, metadata=metadata.get(kind))
    return _compact(content.getvalue().decode()).encode() if kind == "svg" else content.getvalue()


def _compact(svg: str) -> str:
    """An SVG at about half its size that looks the same: coordinates of two decimals of a point, each style written
    once, no indentation, no names of groups and no rotations by nothing. Texts stay as they are."""
    head, end, body = svg.partition("</metadata>")
    styles: dict[str, str] = {}

    def rounded(match: re.Match[str]) -> str:
        return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{float(number[0]):.2f}", match[0])

    def named(match: re.Match[str]) -> str:
        # Named by what it says: two pictures within one page do not change each other.
        name = styles.setdefault(match[1], f"s{hashlib.sha256(match[1].encode()).hexdigest()[:8]}")
        return f'class="{name}"'

    def tag(match: re.Match[str]) -> str:
        # A scale is no coordinate: letters drawn as paths have one of 0.015625.
        text = re.sub(r'\b(?:d|x|y|width|height)="[^"]*"', rounded, match[0])
        text = re.sub(r' transform="rotate\(-0 [^"]*"', "", re.sub(r'^<g id="[^"]*"', "<g", text))
        return re.sub(r'\bstyle="([^"]*)"', named, text)

    body = re.sub(r"\n +", "\n", re.sub(r"<\w[^>]*>", tag, body))
    rules = "".join(f"\n.{name} {{{style}}}" for style, name in styles.items())
    return head + end + body.replace("</style>", f"{rules}\n</style>", 1)
