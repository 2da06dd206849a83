"""InfoMin's figures that vary one thing about the views (Tian et al., arXiv 2005.10243): points without numbers."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.contracts import Measure
from vantage.studies.lab.entries import infomin_commands, infomin_flows
from vantage.studies.lab.entries.infomin_arms import (
    AT_PAPERS_RATE,
    COLORS,
    CROPS,
    DISTANCES,
    FROM_SCRATCH,
    JITTERS,
    LADDER,
    MEASURES,
    WIDTHS,
    floors_of,
    own_floors_of,
)
from vantage.studies.lab.entry import Arm, Cell, Claim, Entry, Reason
from vantage.studies.lab.judging.predicates import Above, Beats, Close, Highest, Order, Predicate
from vantage.studies.lab.judging.shapes import Correlation, InteriorPeak, SharperPeak
from vantage.studies.lab.measures.mosaics import MIOU, MosaicSegmentation
from vantage.studies.lab.panel import Panel

__all__ = ["ENTRIES"]

LINEAR, SHARED, _HEADS = "linear-cached", "I_NCE", ("MLP", "linear")


def _cells(arms: dict[str, Arm], *more: Measure) -> tuple[Cell, ...]:
    return tuple(Cell(name, arm, (*MEASURES, *more)) for name, arm in arms.items())


def _row(what: str, *values: str) -> tuple[tuple[str, ...], ...]:
    """The cells of each head, in the order of the values."""
    return tuple(tuple(f"{head}, {what} {value}" for value in values) for head in _HEADS)


def _best(rows: tuple[tuple[str, ...], ...], place: int) -> tuple[Predicate, ...]:
    return tuple(Highest(row[place], row[:place] + row[place + 1 :]) for row in rows)


def _panels(curves: dict[str, dict[str, float]] | dict[str, tuple[str, ...]], across: str = "") -> tuple[Panel, ...]:
    """Accuracy and I_NCE by what is varied, and accuracy against I_NCE."""
    names = {name: tuple(curve) for name, curve in curves.items()}
    return (Panel(LINEAR, curves, across), Panel(SHARED, curves, across), Panel(LINEAR, names, x_measure=SHARED))


def _positions(names: tuple[str, ...]) -> dict[str, float]:
    """Cells named by a number, each with this number as its x position."""
    return {name: float(name.split()[-1]) for name in names}


def _by_head(row: tuple[tuple[str, ...], ...]) -> dict[str, dict[str, float]]:
    return {head: _positions(names) for head, names in zip(_HEADS, row, strict=True)}


def _unlearned(strong: str, weak: str) -> tuple[Reason, Reason]:
    """Why stronger views are worse here, by the cells of the strongest views and of weak ones."""
    return (
        Reason("the strongest views are hardly learned in so short a run: their I_NCE on test images is below .2",
            Above(f"{strong} @ {SHARED}", 0.2, below=True), SHARED),
        Reason("the network and its budget as such: with weak views it is above its random encoder",
            Beats(weak, "random encoder"), LINEAR, True),
    )


_DISTANCES, (_PATCH_FLOORS, _PATCH_GATE) = tuple(DISTANCES), floors_of("d 32", DISTANCES)

FIGURE_3 = Entry(
    "infomin-figure-3",
    "InfoMin",
    "Figure 3",
    "distance of two patches",
    cells=(*_PATCH_FLOORS, *_cells(DISTANCES)),
    claims=(
        Claim("1", "I_NCE falls with the distance", "§3.3", (Order(_DISTANCES[::-1]),), (), SHARED),
        Claim("2", "accuracy peaks inside", "§3.3", (InteriorPeak(_DISTANCES),), (), LINEAR, True),
        Claim("3", "accuracy peaks at 128 px, two patches", "§3.3",
            (Highest("d 32", tuple(name for name in _DISTANCES if name != "d 32")),), (), LINEAR, True),
    ),
    commands=infomin_commands.FIGURE_3,
    about_commands=infomin_commands.ABOUT_FIGURE_3,
    gate=_PATCH_GATE,
    panels=_panels({"": _positions(_DISTANCES)}, "distance of the patches (px)"),
    scale="patches of 16 px, a quarter of the paper's, in images of 64 px: 32 px are two patches; SimCLR by SGD;"
    f" features of whole images at 16 px; {FROM_SCRATCH}",
)

_COLORS, _RANDOM = tuple(COLORS), tuple(f"random encoder, {name}" for name in COLORS)
_COLOR_FLOORS, _COLOR_GATES = own_floors_of(COLORS)
_FALLING = (Correlation(_COLORS, SHARED, negative=True),)

FIGURE_4 = Entry(
    "infomin-figure-4",
    "InfoMin",
    "Figure 4",
    "color spaces: what the views share against accuracy",
    cells=(*_COLOR_FLOORS, *_cells(COLORS, MosaicSegmentation())),
    claims=(
        Claim("1", "over color spaces, accuracy rises as I_NCE falls", "§3.3", _FALLING, (), LINEAR, True,
            gates=_COLOR_GATES),
        Claim("2", "the mean IoU rises as I_NCE falls", "§3.3", _FALLING, (), MIOU, True,
            gates=_COLOR_GATES, stand_in=True, note="mosaics of four images of CIFAR-10 (JPEG) in place of NYU-v2;"
            " random encoders were not asked, and may have the same order"),
        Claim("3", "Lab and YDbDr are alike, within 1 point", "§4.2.1", (Close(("Lab", "YDbDr"), 1.0),), (), LINEAR,
            True, gates=_COLOR_GATES[-2:]),
        Claim("4", "the gain over a random encoder rises as I_NCE falls", "ours", (Correlation(_COLORS, SHARED, True,
            _RANDOM),), (), LINEAR, True, gates=_COLOR_GATES),
        Claim("a", "training helps in every space: it is above its random encoder", "ours",
            tuple(Beats(*pair) for pair in zip(_COLORS, _RANDOM, strict=True)), (), LINEAR),
    ),
    commands=infomin_commands.FIGURE_4,
    about_commands=infomin_commands.ABOUT_FIGURE_4,
    gate=_COLOR_GATES[-1],
    panels=(*_panels({"": _COLORS}), Panel(MIOU, {"": _COLORS}, x_measure=SHARED)),
    scale=f"an encoder of half the width for each view, in-batch negatives, τ .1; {FROM_SCRATCH}",
)

_CROP, _JITTER = _row("c", ".02", ".08", ".2", ".4", ".7"), _row("x", ".125", ".5", "1", "1.5", "2.5")
_FLOORS, _GATE = floors_of("MLP, c .2", CROPS)
_JITTER_GATES = (replace(_GATE, base="MLP, x .5"),)
_JITTER_FAILS = (*_unlearned("MLP, x 2.5", "MLP, x .125"),
    Reason("the learning rate: at four times it, in earlier runs, the weakest jitter was best too", ruled_out=True))

FIGURE_5 = Entry(
    "infomin-figure-5",
    "InfoMin",
    "Figure 5",
    "crop bound and jitter: extract of figures 13 and 14",
    cells=(*_FLOORS, *_cells({name: arm for name, arm in {**CROPS, **JITTERS}.items() if name.startswith("MLP")})),
    claims=(
        Claim("1", "the best crop bound is .2", "§3.4", _best(_CROP[:1], 2), (), LINEAR, True,
            part_of="claim 2 of infomin-figure-13"),
        Claim("2", "the best jitter is 1", "§3.4", _best(_JITTER[:1], 2), (), LINEAR, True,
            gates=_JITTER_GATES, part_of="claim 1 of infomin-figure-14", reasons=_JITTER_FAILS),
        Claim("a", "the best jitter lies inside", "ours", (InteriorPeak(_JITTER[0]),), (), LINEAR, True,
            gates=_JITTER_GATES, part_of="claim a of infomin-figure-14", reasons=_JITTER_FAILS),
    ),
    commands=(infomin_commands.sweep("crop"), infomin_commands.sweep("jitter")),
    gate=_GATE,
    panels=(
        Panel(LINEAR, {"": _positions(_CROP[0])}, "crop bound c"),
        Panel(LINEAR, {"": _positions(_JITTER[0])}, "strength of jitter x"),
        Panel(LINEAR, {"crop bound": _CROP[0], "jitter": _JITTER[0]}, x_measure=SHARED),
    ),
    scale=f"jitter at {AT_PAPERS_RATE}",
)

_WIDTHS, _LADDER = tuple(WIDTHS), tuple(LADDER)
_WIDTH_FLOORS, _WIDTH_GATES = own_floors_of(WIDTHS)

FIGURE_9 = Entry(
    "infomin-figure-9",
    "InfoMin",
    "Figure 9",
    "low and high frequencies, by the width of the blur",
    cells=(*_WIDTH_FLOORS, *_cells(WIDTHS)),
    claims=(
        Claim("1", "I_NCE peaks inside (the paper: at .7, here .35)", "B.3", (InteriorPeak(_WIDTHS),), (), SHARED),
        Claim("2", "above .7 (.35 here) accuracy peaks inside (the paper: at 1)", "B.3", (InteriorPeak(_WIDTHS[2:]),),
            (), LINEAR, True, gates=_WIDTH_GATES[2:]),
        Claim("3", "below .7 (.35 here) accuracy rises with the width", "B.3", (Order(_WIDTHS[:3]),), (), LINEAR,
            True, gates=_WIDTH_GATES[:3]),
        Claim("4", "accuracy peaks at a larger width than I_NCE: from .7 to 1 (.35 to .5 here) accuracy"
            " rises and I_NCE falls", "B.3", (Beats(_WIDTHS[3], _WIDTHS[2]),
            Beats(f"{_WIDTHS[2]} @ {SHARED}", f"{_WIDTHS[3]} @ {SHARED}")), (), LINEAR, True, gates=_WIDTH_GATES[2:4]),
        Claim("5", "at equal I_NCE the larger width is more accurate", "B.3", (),
            note="no two cells have equal I_NCE, and six points are too few to interpolate: the picture shows them"),
    ),
    commands=infomin_commands.FIGURE_9,
    gate=_WIDTH_GATES[3],
    panels=_panels({"": _positions(_WIDTHS)}, "width of the blur σ (px)"),
    scale="CMC by cross-entropy, with an encoder of half the width for each band; images of half the paper's side, so"
    f" that widths are halved too; {FROM_SCRATCH}",
)

_LADDER_FLOORS, _LADDER_GATE = floors_of(_LADDER[2], LADDER)
_LADDER_FAILS = (*_unlearned(_LADDER[-1], _LADDER[0]),
    Reason("a budget of fifteen times as many images: there too, in one seed, jitter, RandAugment and grayscale each"
        " cost accuracy", ruled_out=True))

FIGURE_12 = Entry(
    "infomin-figure-12",
    "InfoMin",
    "Figure 12",
    "a ladder of augmentations",
    cells=(*_LADDER_FLOORS, *_cells(LADDER)),
    claims=(
        Claim("1", "over a ladder of augmentations, accuracy rises as I_NCE falls", "C.1",
            (Correlation(_LADDER, SHARED, True),), (), LINEAR, True, reasons=_LADDER_FAILS),
        Claim("2", "the strongest augmentation is best", "C.1", (Highest(_LADDER[-1], _LADDER[:-1]),), (), LINEAR, True,
            reasons=_LADDER_FAILS),
        Claim("3", "each step of augmentation lowers I_NCE", "C.1", (Order(_LADDER[::-1]),), (), SHARED),
    ),
    commands=(infomin_commands.sweep("ladder", "moco_v1"),),
    gate=_LADDER_GATE,
    panels=_panels({"": _LADDER}),
    scale=f"MoCo v1; no blur at 32 px; {AT_PAPERS_RATE}",
)

FIGURE_13 = Entry(
    "infomin-figure-13",
    "InfoMin",
    "Figure 13",
    "crop bound c, linear and MLP head",
    cells=(*_FLOORS, *_cells(CROPS)),
    claims=(
        Claim("1", "I_NCE rises with the crop bound c", "C.2", tuple(Order(row) for row in _CROP), (), SHARED),
        Claim("2", "the best c is .2, each head", "C.2", _best(_CROP, 2), (), LINEAR, True),
        Claim("3", "MLP: .08 costs more than a point", "C.2", (Beats(_CROP[0][2], _CROP[0][1], 1.0),), (), LINEAR,
            True),
        Claim("4", "the peak is sharper with an MLP", "C.2", (SharperPeak(*(row[1:4] for row in _CROP)),), (),
            LINEAR, True, precondition=_best(_CROP, 2)[0]),
        Claim("a", "the best c lies inside, each head", "ours", tuple(InteriorPeak(row) for row in _CROP), (), LINEAR,
            True),
    ),
    commands=(infomin_commands.sweep("crop"), infomin_commands.sweep("crop", "moco_v1")),
    gate=_GATE,
    panels=_panels(_by_head(_CROP), "crop bound c"),
    scale=f"MoCo v2, with an MLP at τ .15 and a linear head at τ .07; {FROM_SCRATCH}, since a base favors its own c",
)

FIGURE_14 = Entry(
    "infomin-figure-14",
    "InfoMin",
    "Figure 14",
    "strength of jitter x, linear and MLP head",
    cells=(*_FLOORS, *_cells(JITTERS)),
    claims=(
        Claim("1", "the best strength of jitter x is 1, each head", "C.2", _best(_JITTER, 2), (), LINEAR, True,
            reasons=_JITTER_FAILS),
        Claim("2", "the peak is sharper with an MLP", "C.2", (SharperPeak(*(row[1:4] for row in _JITTER)),),
            (), LINEAR, True, precondition=_best(_JITTER, 2)[0]),
        Claim("3", "I_NCE falls with x", "§3.4", tuple(Order(row[::-1]) for row in _JITTER), (), SHARED),
        Claim("a", "the best jitter x lies inside, each head", "ours", tuple(InteriorPeak(row) for row in _JITTER), (),
            LINEAR, True, reasons=_JITTER_FAILS),
    ),
    commands=(infomin_commands.sweep("jitter"), infomin_commands.sweep("jitter", "moco_v1")),
    gate=_JITTER_GATES[0],
    panels=_panels(_by_head(_JITTER), "strength of jitter x"),
    scale=f"figure 13's heads, crops from .2 of the image; {AT_PAPERS_RATE}, since a base favors its own x",
)

ENTRIES = (FIGURE_3, FIGURE_4, FIGURE_5, *infomin_flows.ENTRIES, FIGURE_9, FIGURE_12, FIGURE_13, FIGURE_14)
"""InfoMin's figures about views, in the paper's order."""
