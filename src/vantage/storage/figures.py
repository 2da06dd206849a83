"""Figures without a window system, in one look. matplotlib is imported only where a picture is made."""

from typing import TYPE_CHECKING, Any

from vantage.errors import UserError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["COLORS", "color", "needs_matplotlib", "panels", "titled"]

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Told apart by people who do not see all colors (Okabe & Ito)."""


def color(number: int) -> str:
    """The color of the number-th thing in a picture."""
    return COLORS[number % len(COLORS)]


def needs_matplotlib() -> None:
    """Raises `UserError` that tells how to install it where matplotlib is missing."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise UserError(
            "pictures need matplotlib, which is not installed: pip install 'vantage-ssl[analyse]'"
        ) from None


def panels(rows: int, columns: int, width: float = 4.6, height: float = 3.4) -> tuple["Figure", Any]:
    """A figure of rows × columns panels of `width` × `height` inches each, and the panels as an array [row, column]."""
    needs_matplotlib()
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
    """Words over a panel and along its axes."""
    panel.set_title(title, fontsize=10)
    panel.set_xlabel(across, fontsize=9)
    panel.set_ylabel(up, fontsize=9)
