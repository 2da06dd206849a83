"""What Ring's annealing and inner cut do (Wu et al., arXiv 2010.02037, Table 2, Figure 2a, Appendix E)."""

# fmt: off

from dataclasses import replace

from vantage.composition.fitting import everywhere
from vantage.negatives import Ball
from vantage.recipes import ball_ir, ring_ir, ring_ir_absolute, ring_ir_unannealed
from vantage.schedules import Constant
from vantage.studies.lab.entries.cnce_arms import (
    FALSE,
    IR,
    IR_BASE,
    IR_FLOORS,
    IR_GATE,
    KNN,
    LINEAR,
    LONG_IR,
    LONG_IR_FLOORS,
    LONG_IR_GATE,
    arm,
    band_terms,
    from_scratch,
    long_arm,
)
from vantage.studies.lab.entries.paper_commands import judged, ring_training
from vantage.studies.lab.entry import Arm, Cell, Claim, Entry, Reason
from vantage.studies.lab.judging.predicates import Beats, Close, Order
from vantage.studies.lab.judging.shapes import Gains
from vantage.studies.lab.measures.vectors import FalseByBand, ProtocolAccuracy
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import arm_at_papers_rate
from vantage.training.run import Run

__all__ = ["FIGURE_2A", "TABLE_2"]

_MEASURES = (ProtocolAccuracy(),)
_WARM = (
    Cell("warm IRing", arm_at_papers_rate(arm(ring_ir(32), LONG_IR)), _MEASURES),
    Cell("warm w_u = 100", arm_at_papers_rate(arm(ball_ir(32), LONG_IR)), _MEASURES),
)
_CUT = (
    "as in the paper's code, the inner cut drops a share equal to a tenth of the share kept: while all keys are kept,"
    " the nearest tenth is dropped, which weighs most (claim b)"
)
_FAILS = (
    Reason("the code's inner cut while all keys are kept: with a cut of 1 % of the keys the same ring learns more",
        Beats("w_u = 99", "IRing"), LINEAR),
    Reason("the ring at its last width: from a warm base it is within a point of its ball",
        Close(("warm IRing", "warm w_u = 100"), 1.0), LINEAR, True),
)
_TOO_EARLY = (
    Reason("the last width from the first step on, when near keys say little: a ball that narrows from all keys learns"
        " more", Beats("w_u = 100", "no anneal"), LINEAR),
    Reason("the inner cut: of two that narrow, with a cut of 1 % and without, both learn the same within a point",
        Close(("w_u = 99", "w_u = 100"), 1.0), LINEAR, True),
)
_LESIONS = {
    "from scratch": ("IR", "IRing", "no anneal", "w_u = 100", "w_u = 99"),
    "from a warm base": tuple(cell.name for cell in _WARM),
}

TABLE_2 = Entry(
    "cnce-table-2",
    "CNCE",
    "Table 2",
    "IRing without annealing, and without the inner cut",
    cells=(
        *LONG_IR_FLOORS,
        Cell("IR", LONG_IR, _MEASURES, {"CIFAR-10": 81.2, "ImageNet": 43.2}),
        Cell("IRing", long_arm(ring_ir(32)), _MEASURES, {"CIFAR-10": 83.9, "ImageNet": 48.4}),
        Cell("no anneal", long_arm(ring_ir_unannealed(32)), _MEASURES, {"CIFAR-10": 81.4, "ImageNet": 41.3}),
        Cell("w_u = 100", long_arm(ball_ir(32)), _MEASURES, {"CIFAR-10": 82.1}),
        Cell("w_u = 99", long_arm(ring_ir_absolute(32)), _MEASURES),
        *_WARM,
    ),
    claims=(
        Claim("1", "IRing, as the code cuts it, is above IRing without annealing", "§5", (Beats("IRing", "no anneal"),),
            ("CIFAR-10", "ImageNet"), LINEAR, True, note=_CUT, reasons=_FAILS),
        Claim("1, text", "IRing with the inner cut of the text, 1 % of all keys, is above it without annealing", "§4",
            (Beats("w_u = 99", "no anneal"),), (), LINEAR, True),
        Claim("2", "IRing, as the code cuts it, is above its ball", "§5", (Beats("IRing", "w_u = 100"),),
            ("CIFAR-10",), LINEAR, True, note=_CUT, reasons=_FAILS),
        Claim("2, text", "IRing with the inner cut of the text is above its ball", "§4",
            (Beats("w_u = 99", "w_u = 100"),), (), LINEAR, True),
        Claim("3", "annealing matters more than the inner cut", "§5", (Beats("w_u = 100", "no anneal"),),
            ("CIFAR-10",), LINEAR, True),
        Claim("4", "ImageNet: IRing without annealing is below IR", "numbers", (Beats("IR", "no anneal"),),
            ("ImageNet",), LINEAR, True),
        Claim("4, CIFAR-10", "CIFAR-10: IRing without annealing is above IR", "numbers", (Beats("no anneal", "IR"),),
            ("CIFAR-10",), LINEAR, True, note="the opposite of claim 4", reasons=_TOO_EARLY),
        Claim("a", "from a warm base, at keep .1 from the first step, the ring is above its ball", "ours",
            (Beats("warm IRing", "warm w_u = 100"),), (), LINEAR, True),
        Claim("b", "why: with the inner cut at 1 % from the first step on, as in the text (w_u = 99), it is above IRing"
            " with the code's", "ours", (Beats("w_u = 99", "IRing"),), (), LINEAR, True),
    ),
    commands=tuple(line for images in ("CIFAR10", "IMAGENET") for line in judged("linear-ring", (ring_training(recipe,
        images) for recipe in ("cnce_ir", "ring_ir", "ring_ir_unannealed", "ball_ir")), images)),
    gate=LONG_IR_GATE,
    panels=(
        Panel(LINEAR, _LESIONS, paper_columns=("CIFAR-10", "ImageNet"), paper_label="ResNet-18, top-1 (%)"),
        Panel(KNN, _LESIONS),
    ),
    scale="the arms of claims 1 to 4 are trained from scratch, as long as the base, which is IR, and annealed over the"
    " first third, as in the paper; all at the papers' rate, which falls to 0, with equally many draws",
)
"""Table 2: Ring without one of its parts."""

_KEEPS = {"a tenth": 0.1, "a quarter": 0.25, "all": 1.0}
_OLDER = Arm(replace(IR_BASE.run, epochs=8), start=IR_BASE)
_STARTS = {"0": None, "4": IR_BASE, "12": _OLDER}


def _ball(keep: float, start: Arm | None) -> Arm:
    """An epoch of IR whose negatives are drawn from the nearest share of the keys."""
    recipe = IR if keep == 1.0 else ball_ir(32)
    full = arm(recipe, start) if start else from_scratch(recipe, 1, falling=True)
    width = Constant(keep)

    def with_width(run: Run) -> Run:
        narrow = everywhere(run.branches, lambda part: Ball(width) if isinstance(part, Ball) else part)
        return replace(run, branches=narrow)

    return replace(full, run=with_width(full.run))


def _cells_from(age: str, *widths: str) -> tuple[Cell, ...]:
    measures = {"all": (ProtocolAccuracy(), FalseByBand())}
    return tuple(Cell(f"{w} from {age}", _ball(_KEEPS[w], _STARTS[age]), measures.get(w, _MEASURES)) for w in widths)


_EARLY, _MIDDLE, _LATE = (tuple(f"{words} from {age}" for words in _KEEPS) for age in _STARTS)
_WIDTHS = {
    f"from epoch {age}": {f"{words} from {age}": keep for words, keep in _KEEPS.items()} for age in _STARTS
}
_NEAREST = tuple(band_terms(f"all from {age}", "0 to 1 %")[0] for age in _STARTS)

FIGURE_2A = Entry(
    "cnce-figure-2a",
    "CNCE",
    "Figure 2a",
    "a ring that starts at epoch 0, 50 or 100 of IR",
    cells=(
        *IR_FLOORS,
        Cell("IR base", IR_BASE, _MEASURES),
        *_cells_from("0", *_KEEPS),
        *_cells_from("4", *_KEEPS),
        *_cells_from("12", *_KEEPS),
    ),
    claims=(
        Claim("1", "started at epoch 0: the narrower the ring, the worse", "Appendix E", (Order(_EARLY),), (), LINEAR,
            True),
        Claim("2", "started in the middle: all widths are within ± .5", "Appendix E", (Close(_MIDDLE, 0.5),), (),
            LINEAR, True, note="after 4 of 12 epochs"),
        Claim("3", "started late: the narrower, the better", "Appendix E", (Order(_LATE[::-1]),), (), LINEAR, True),
        Claim("4", "the later it starts, the larger the gain of a tenth over all", "Appendix E, its sign only",
            (Gains((_LATE[0], _LATE[-1]), (_EARLY[0], _EARLY[-1])),), (), LINEAR, True),
        Claim("a", "the same by nearest neighbors", "ours", (Gains((_LATE[0], _LATE[-1]), (_EARLY[0], _EARLY[-1])),),
            (), KNN, True),
        Claim("b", "why: the older IR is, the more of the nearest hundredth are of the query's class", "ours",
            (Order(_NEAREST),), (), FALSE),
    ),
    commands=judged("knn --k 1", (
        *(f"{ring_training('cnce_ir', run=f'cnce_ir_{age}')} --epochs {age}" for age in (50, 100)),
        *(f"{ring_training('ball_ir', run=f'ball_{keep}_from_{age}')} --epochs {200 - age}"
            + f" --init runs/cnce_ir_{age}" * bool(age) + f" --set branches.0.negatives.0.keep=Constant({keep})"
            for age in (0, 50, 100) for keep in (0.1, 0.25, 0.5, 1.0)),
    ), "CIFAR10"),
    gate=IR_GATE,
    panels=(
        *(Panel(by, _WIDTHS, "share of the nearest") for by in (LINEAR, KNN)),
        Panel(FALSE, {"": {term: float(age) for term, age in zip(_NEAREST, _STARTS, strict=True)}}, "epochs of IR",
            y_label="nearest 1 %: of the query's class (%)"),
    ),
    scale="one epoch, after 0, 4 or 12 epochs of IR, with equally many draws from the nearest"
    " tenth, the nearest quarter or all keys; no inner cut, so that all keys are IR itself",
)
"""Figure 2a: rings that start at different epochs."""
