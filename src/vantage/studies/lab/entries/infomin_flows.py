"""InfoMin's figures about learned views (Tian et al., arXiv 2005.10243, section 4.2): accuracy against what flows of
several kinds leave in common, and larger networks on learned views. They extend the cells of Table 5."""

# fmt: off

from vantage.studies.lab.entries import infomin_commands
from vantage.studies.lab.entries.infomin_sharing import GATES, LEARNED_ROWS, LINEAR, SHARED, TABLE_5
from vantage.studies.lab.entry import Arm, Cell, Claim, Entry, Untrained
from vantage.studies.lab.experiments.learned_views import RAW_VIEWS, SPACES, LearnedViewsCell, contrast
from vantage.studies.lab.judging.curves import Curve, MostlyLeftOfTop, NearerToTop, ReverseU, VariesLess
from vantage.studies.lab.judging.predicates import Beats
from vantage.studies.lab.judging.shapes import Correlation, Gains
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import gate, own_floors

__all__ = ["ENTRIES"]

_SPACES = tuple(LEARNED_ROWS)
_FREE = ("unsupervised", "semi-supervised")
"""Ways of learning that reduce what views share."""
_STEPS = 95
"""Steps of an epoch without labels; Table 5's flows learn for two epochs."""
_EPOCHS = {"1 epoch": 1, "8 epochs": 8}
"""How long other unsupervised flows learn."""


def _of_spaces(row: str) -> tuple[str, ...]:
    return tuple(f"{space}, {row}" for space in _SPACES)


_NVP = tuple(Cell(f"{space}, {way}, NVP", LearnedViewsCell(way, space, "NVP")) for space in _SPACES for way in _FREE)
_LENGTHS = tuple(
    Cell(f"{space}, unsupervised, {name}", LearnedViewsCell("unsupervised", space, steps=epochs * _STEPS))
    for space in _SPACES for name, epochs in _EPOCHS.items()
)
_UNSUPERVISED, _SEMI = (_of_spaces(way) + _of_spaces(f"{way}, NVP") for way in _FREE)
_REDUCED = (*_UNSUPERVISED, *(cell.name for cell in _LENGTHS))
_CURVE = Curve((*_REDUCED, *_of_spaces(RAW_VIEWS)), SHARED)
_INSIDE = ReverseU(_CURVE)

FIGURE_7 = Entry(
    "infomin-figure-7",
    "InfoMin",
    "Figure 7",
    "I_NCE against accuracy of learned views",
    cells=(*TABLE_5.cells, *_NVP, *_LENGTHS),
    claims=(
        Claim("1", "unsupervised: a reverse U with its top inside", "§4.2", (_INSIDE,), (), LINEAR, True, gates=GATES,
            note="a parabola over flows of both kinds and of three lengths, and raw views; slopes in points per nat"),
        Claim("2", "semi-supervised spreads less", "§4.2", (VariesLess(_SEMI, _UNSUPERVISED),), (), LINEAR,
            note="over two spaces and two kinds of flow"),
        Claim("3", "semi-supervised is nearer to the top", "§4.2", (NearerToTop(_CURVE, _SEMI, _UNSUPERVISED),), (),
            LINEAR, precondition=_INSIDE),
        Claim("4", "most unsupervised runs share too little", "§4.2", (MostlyLeftOfTop(_CURVE, _REDUCED),), (), LINEAR,
            precondition=_INSIDE),
        Claim("a", "over raw and learned views of both spaces, accuracy rises as I_NCE falls", "ours",
            (Correlation(sum(LEARNED_ROWS.values(), ()), SHARED, negative=True),), (), LINEAR, True, gates=GATES),
    ),
    commands=infomin_commands.FIGURE_7,
    about_commands=infomin_commands.ABOUT_FIGURE_7,
    gate=TABLE_5.gate,
    panels=tuple(Panel(LINEAR, {way: tuple(cell for cell in cells if cell.startswith(space)) for way, cells in
        (("unsupervised", _REDUCED), ("semi-supervised", _SEMI), (RAW_VIEWS, _of_spaces(RAW_VIEWS)))},
        x_measure=SHARED) for space in _SPACES),
    scale=f"the cells of infomin-table-5, flows that do not preserve volume (NVP), and unsupervised flows that learn"
        f" for 1 and 8 epochs instead of 2: {TABLE_5.scale}",
)

_FULL = ", full width"
_WIDE = (32, 64, 128, 256)
"""The usual widths of the other entries; Table 5's networks have half of them."""
_ROWS = (RAW_VIEWS, "semi-supervised")
_HALF_CELLS = tuple(TABLE_5.cell(name) for row in _ROWS for name in _of_spaces(row))
_FULL_CELLS = tuple(
    Cell(f"{space}, {row}{_FULL}", LearnedViewsCell(row, space, widths=_WIDE)) for row in _ROWS for space in _SPACES
)
_FULL_FLOORS = tuple(floor for name, space in SPACES.items()
    for floor in own_floors(f"{name}{_FULL}", Arm(contrast(space, widths=_WIDE))))
_FULL_GATES = tuple(gate(f"{space}, {RAW_VIEWS}{_FULL}", f"{space}{_FULL}") for space in _SPACES)
_PAIRS, _FULL_PAIRS = (
    tuple((f"{space}, semi-supervised{width}", f"{space}, {RAW_VIEWS}{width}") for space in _SPACES)
    for width in ("", _FULL)
)
"""Learned views and raw ones, of each space, by the width of the networks."""

FIGURE_8 = Entry(
    "infomin-figure-8",
    "InfoMin",
    "Figure 8",
    "learned views against raw ones, larger backbones",
    cells=(*(cell for cell in TABLE_5.cells if isinstance(cell.experiment, Untrained)), *_HALF_CELLS, *_FULL_FLOORS,
        *_FULL_CELLS),
    claims=(
        Claim("1", "learned views are above raw ones, each backbone and space", "§4.2.2",
            tuple(Beats(*pair) for pair in (*_PAIRS, *_FULL_PAIRS)), ("accuracy",), LINEAR, True,
            gates=(*GATES, *_FULL_GATES)),
        Claim("2", "learned views gain more over raw ones in RGB than in YDbDr, each backbone", "§4.2.2",
            (Gains(*_PAIRS), Gains(*_FULL_PAIRS)), (), LINEAR, True, gates=(*GATES, *_FULL_GATES)),
        Claim("3", "learned RGB rises with capacity", "§4.2.2", (Beats(_FULL_PAIRS[0][0], _PAIRS[0][0]),), (), LINEAR,
            True, gates=(GATES[0], _FULL_GATES[0])),
    ),
    commands=infomin_commands.FIGURE_8,
    about_commands=infomin_commands.ABOUT_FIGURE_8,
    gate=TABLE_5.gate,
    panels=(Panel(LINEAR, {"": tuple(f"{space}, {row}{width}"
        for space in _SPACES for width in ("", _FULL) for row in _ROWS)}),),
    scale=f"of the cells of infomin-table-5, raw and semi-supervised views, and both with networks of twice the width:"
        f" {TABLE_5.scale}",
)

ENTRIES = (FIGURE_7, FIGURE_8)
"""Figures 7 and 8."""
