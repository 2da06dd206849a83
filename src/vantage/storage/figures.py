"""Figures without a window system, in one look. matplotlib is imported only when a picture is drawn."""

from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLORS", "color", "panels", "picture", "titled"]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Colors that people with color blindness can distinguish (Okabe & Ito)."""


def color(number: int) -> str:
    """The color of a curve by its number; colors repeat after the last."""
    return COLORS[number % len(COLORS)]


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


def titled(panel: Any, title: str, across: str, up: str) -> None:
    """The title of a panel and the labels of its axes."""
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(across, fontsize=9)
    panel.set_ylabel(up, fontsize=9)


def picture(figure: "Figure", kind: str) -> bytes:
    """A figure as a file of a kind: png, svg or pdf. Files hold no date, so the same figure gives the same bytes."""
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
    content = BytesIO()
    figure.savefig(content, format=kind, metadata=undated.get(kind))
    return content.getvalue()
