"""InfoMin's figures about views (Tian et al., arXiv 2005.10243), which show points without numbers, and its claims
about them. The figures that vary one thing are in `infomin_sweeps`."""

# fmt: off

from vantage.studies.lab.entries import infomin_commands, infomin_sweeps
from vantage.studies.lab.entries.infomin_sharing import (
    GATES,
    LEARNED_ROWS,
    LINEAR,
    SHARED,
    SPREADS,
    TABLE_5,
)
from vantage.studies.lab.entry import Claim, Entry
from vantage.studies.lab.experiments.learned_views import RAW_VIEWS
from vantage.studies.lab.judging.predicates import Beats
from vantage.studies.lab.judging.shapes import Correlation, Gains
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.verdicts import SPREAD

__all__ = ["ENTRIES"]

_SEMI, _RAW = (tuple(f"{space}, {row}" for space in LEARNED_ROWS) for row in ("semi-supervised", RAW_VIEWS))
_ONE_LEVEL = ("each way of learning has one flow per space and seed, so it has no curve over I_NCE: claim a has one"
    " over raw and learned views")
_ONE_BACKBONE = "one small backbone"
_SCALE = f"the cells of infomin-table-5: {TABLE_5.scale}"

FIGURE_7 = Entry(
    "infomin-figure-7",
    "InfoMin",
    "Figure 7",
    "I_NCE against accuracy of learned views",
    cells=TABLE_5.cells,
    claims=(
        Claim("1", "unsupervised: a reverse U with its top inside", "§4.2", (), note=_ONE_LEVEL),
        Claim("2", "semi-supervised spreads less", "§4.2", tuple(Beats(f"{space}, unsupervised",
            f"{space}, semi-supervised") for space in LEARNED_ROWS), ("SD",), f"{LINEAR}{SPREAD}",
            note=f"over seeds instead of flows, {SPREADS}", part_of="claim 4 of infomin-table-5"),
        Claim("3", "semi-supervised is nearer to the top", "§4.2", (), note=_ONE_LEVEL),
        Claim("4", "most unsupervised runs share too little", "§4.2", (), note=_ONE_LEVEL),
        Claim("a", "over raw and learned views of both spaces, accuracy rises as I_NCE falls", "ours",
            (Correlation(sum(LEARNED_ROWS.values(), ()), SHARED, negative=True),), (), LINEAR, True, gates=GATES),
    ),
    commands=infomin_commands.FIGURE_7,
    about_commands=infomin_commands.ABOUT_FIGURE_7,
    gate=TABLE_5.gate,
    panels=(Panel(LINEAR, LEARNED_ROWS, x_measure=SHARED),),
    scale=_SCALE,
)

FIGURE_8 = Entry(
    "infomin-figure-8",
    "InfoMin",
    "Figure 8",
    "learned views against raw ones, larger backbones",
    cells=TABLE_5.cells,
    claims=(
        Claim("1", "learned views are above raw ones, each backbone and space", "§4.2.2",
            tuple(Beats(*pair) for pair in zip(_SEMI, _RAW, strict=True)), ("accuracy",), LINEAR, True,
            gates=GATES, part_of="claim 3 of infomin-table-5",
            note=f"{_ONE_BACKBONE}: claim 3 of infomin-table-5 again"),
        Claim("2", "learned views gain more over raw ones in RGB than in YDbDr", "§4.2.2",
            (Gains((_SEMI[0], _RAW[0]), (_SEMI[1], _RAW[1])),), (), LINEAR, True, gates=GATES),
        Claim("3", "learned RGB rises with capacity", "§4.2.2", (),
            note=f"{_ONE_BACKBONE}: claim a of infomin-table-6 has InfoMin by the width of its network"),
    ),
    commands=infomin_commands.FIGURE_8,
    about_commands=infomin_commands.ABOUT_FIGURE_8,
    gate=TABLE_5.gate,
    panels=(Panel(LINEAR, {"": (*_RAW, *_SEMI)}),),
    scale=_SCALE,
)

_SWEEPS = infomin_sweeps.ENTRIES
ENTRIES = (*_SWEEPS[:3], FIGURE_7, FIGURE_8, *_SWEEPS[3:])
"""InfoMin's figures about views, in the paper's order."""
