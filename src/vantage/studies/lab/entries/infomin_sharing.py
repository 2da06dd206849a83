"""InfoMin's experiments on what views share (Tian et al., arXiv 2005.10243): by construction in Table 4, by learning in
Table 5."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.entries import infomin_commands
from vantage.studies.lab.entry import Arm, Cell, Claim, Entry, Reason, paper
from vantage.studies.lab.experiments.learned_views import RAW_VIEWS, SPACES, LearnedViewsCell, contrast
from vantage.studies.lab.experiments.moving_digits import MovingDigits
from vantage.studies.lab.judging.predicates import Above, Beats, Close, Predicate
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import gate, own_floors
from vantage.studies.lab.verdicts import SPREAD

__all__ = ["ENTRIES", "GATES", "LEARNED_ROWS", "LINEAR", "SHARED", "SPREADS", "TABLE_5"]

LINEAR, SHARED = "linear-cached", "I_NCE"
"""Columns: accuracy by a linear classifier, and what the views share."""

_TABLE_4 = paper(
    "digit / background / pixels",
    ("digit", 16.8, 88.6, 13.6),
    ("background", 88.6, 51.7, 16.1),
    ("location", 57.9, 87.6, 3.95),
    ("background, digit, location", 88.8, 56.3, 16.2),
    ("background, digit", 88.2, 53.9, 16.3),
    ("background, location", 88.8, 53.8, 15.9),
    ("digit, location", 14.5, 88.9, 13.7),
    ("supervised", 3.4, 45.3, 0.93),
    ("chance", 88.6, None, 13.78),
)
_ROWS = tuple(replace(cell, experiment=MovingDigits(cell.name)) for cell in _TABLE_4)
_WITH = tuple(cell.name for cell in _TABLE_4 if "background" in cell.name)
_FACTORS = {"digit": "digit", "background": "background", "pixels": "location"}
_LEARNABLE = Above("location @ I_NCE", 0.1)
_VOID = "void while the views that share the location have an I_NCE below .1: the factor is not learned at all"

TABLE_4 = Entry(
    "infomin-table-4",
    "InfoMin",
    "Table 4",
    "Colorful Moving MNIST: what views share decides what is learned",
    cells=(*_ROWS, Cell("untrained", MovingDigits("untrained"))),
    claims=(
        *(Claim(f"1, {column}", f"{column}: the row that shares only this factor is below all rows without it", "§4.1",
            tuple(Beats(cell.name, factor) for cell in _TABLE_4[:7] if factor not in cell.name), (column,), column,
            precondition=_LEARNABLE if column == "pixels" else None, note=_VOID * (column == "pixels"))
            for column, factor in _FACTORS.items()),
        Claim("2, digit", "the background overwhelms: digit errors of rows with it are within 1 of chance", "§4.1",
            tuple(Close((row, "chance"), 1.0) for row in _WITH), ("digit",), "digit"),
        Claim("2, pixels", "the background overwhelms: location errors of rows with it are within 1 pixel of chance",
            "§4.1", tuple(Close((row, "chance"), 1.0) for row in _WITH), ("pixels",), "pixels",
            precondition=_LEARNABLE, note=_VOID),
        Claim("3", "the digit comes before the position: sharing both locates no better than sharing the digit alone",
            "§4.1", (Close(("digit, location", "digit"), 1.0), Beats("digit", "location")), ("pixels",), "pixels",
            precondition=_LEARNABLE, note=_VOID),
        *(Claim(f"4, {column}", f"{column}: supervised is below all", "§4.1",
            tuple(Beats(cell.name, "supervised") for cell in _TABLE_4[:7]), (column,), column) for column in _FACTORS),
        Claim("a", "the more a view reveals of the background, the higher the critic's estimate: rows with it have a"
            " larger I_NCE", "ours", tuple(Beats(f"{one} @ I_NCE", f"{other} @ I_NCE") for one in _WITH for other in
            ("digit", "digit, location")), (), "digit"),
    ),
    commands=(
        "vantage reproduce infomin-table-4 --digits mnist.npz#train --test-digits mnist.npz#test"
        " --backgrounds STL10#train"
        " --test-backgrounds STL10#test --out infomin-table-4",
    ),
    panels=tuple(Panel(column, {"": tuple(cell.name for cell in _TABLE_4)}, y_label=label, paper_columns=(column,),
        paper_label=label, paper_shares_axes=True) for column, label in (("digit", "digit error (%)"),
        ("background", "background error (%)"), ("pixels", "location error (pixels)"))),
    scale="1,600 steps of 64 clips; two frames are seen and the second view is of the third; AdamW; MNIST on ten"
    " classes of Tiny ImageNet",
)

_TABLE_5 = paper(
    "accuracy / SD",
    ("RGB, unsupervised", 82.4, 3.2),
    ("RGB, supervised", 79.9, 1.5),
    ("RGB, semi-supervised", 86.0, 0.6),
    ("RGB, raw views", 81.5, 0.2),
    ("YDbDr, unsupervised", 84.3, 0.5),
    ("YDbDr, supervised", 78.5, 2.3),
    ("YDbDr, semi-supervised", 87.0, 0.3),
    ("YDbDr, raw views", 86.6, 0.2),
)
LEARNED_ROWS = {space: tuple(cell.name for cell in _TABLE_5 if cell.name.startswith(space)) for space in SPACES}
"""Table 5's rows by color space."""
SPREADS = "by the distances of the seeds from their median"
"""How claims about a spread are tested."""
_FLOORS = tuple(floor for name, space in SPACES.items() for floor in own_floors(name, Arm(contrast(space))))
GATES = tuple(gate(f"{space}, {RAW_VIEWS}", space) for space in SPACES)
"""Raw views of each color space are above the floors of this space."""


def _learned(name: str) -> LearnedViewsCell:
    space, _, row = name.partition(", ")
    return LearnedViewsCell(row, space)


def _above(first: str, second: str, spaces: tuple[str, ...] = tuple(SPACES)) -> tuple[Predicate, ...]:
    return tuple(Beats(f"{space}, {first}", f"{space}, {second}") for space in spaces)


TABLE_5 = Entry(
    "infomin-table-5",
    "InfoMin",
    "Table 5",
    "views learned by flows",
    cells=(*_FLOORS, *(replace(cell, experiment=_learned(cell.name)) for cell in _TABLE_5)),
    claims=(
        Claim("1", "semi-supervised is above supervised", "§4.2.2", _above("semi-supervised", "supervised"),
            ("accuracy",), LINEAR, True, gates=GATES),
        Claim("2", "semi-supervised is above unsupervised", "numbers", _above("semi-supervised", "unsupervised"),
            ("accuracy",), LINEAR, True, gates=GATES),
        Claim("3", "semi-supervised is above raw views", "§4.2.2", _above("semi-supervised", RAW_VIEWS), ("accuracy",),
            LINEAR, True, gates=GATES),
        Claim("4", "unsupervised has the larger spread", "§4.2.1", _above("unsupervised", "semi-supervised"), ("SD",),
            f"{LINEAR}{SPREAD}", note=SPREADS),
        Claim("5", "YDbDr: unsupervised is below raw views", "numbers", _above(RAW_VIEWS, "unsupervised", ("YDbDr",)),
            ("accuracy",), LINEAR, True, gates=GATES[1:]),
        Claim("6", "learned views with labels (supervised) are below raw views", "numbers",
            _above(RAW_VIEWS, "supervised"), ("accuracy",), LINEAR, True, gates=GATES, reasons=(
                Reason("raw RGB shares so much that little need be learned, and supervised views share less",
                    Beats(f"RGB, {RAW_VIEWS} @ {SHARED}", f"RGB, supervised @ {SHARED}"), LINEAR),
                Reason("labels as such: in YDbDr supervised views are below raw ones",
                    Beats(f"YDbDr, {RAW_VIEWS}", "YDbDr, supervised"), LINEAR, True),
                Reason("too few labels: with the same labels semi-supervised views are better",
                    Beats("RGB, semi-supervised", "RGB, supervised"), LINEAR, True),
            )),
        Claim("a", "learning reduces what the views share: raw views have a larger I_NCE than both kinds of"
            " learned views that reduce it",
            "§4.2", tuple(Beats(f"{space}, {RAW_VIEWS} @ {SHARED}", f"{space}, {row} @ {SHARED}") for space in SPACES
            for row in ("unsupervised", "semi-supervised")), (), LINEAR),
        Claim("b", "labels keep information: supervised views share more than unsupervised ones", "§4.2, ours",
            tuple(Beats(f"{space}, supervised @ {SHARED}", f"{space}, unsupervised @ {SHARED}") for space in SPACES),
            (), LINEAR),
    ),
    commands=infomin_commands.TABLE_5,
    about_commands=infomin_commands.ABOUT_TABLE_5,
    gate=GATES[0],
    panels=(
        Panel(LINEAR, {"": tuple(cell.name for cell in _TABLE_5)}, paper_columns=("accuracy",),
            paper_label="STL-10, top-1 (%)"),
        Panel(LINEAR, LEARNED_ROWS, x_measure=SHARED),
    ),
    scale="flows that preserve volume, learned on crops of 16 px with 2,500 labels; networks of half the width for each"
    " view, trained within the batch on 7,500 images for 4 epochs; the floors of a color space are those of its raw"
    " views",
)
"""Figures 7 and 8 are asked of its cells too (`infomin_flows`)."""

ENTRIES = (TABLE_4, TABLE_5)
"""Both tables."""
