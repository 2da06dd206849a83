"""Methods trained from scratch, each by its own recipe, for the tables that compare methods and lengths of training.

Four epochs stand for the papers' 200: a table's 100, 800 and 1,000 epochs are 2, 16 and 20 here.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.encoders import Convolutions
from vantage.recipes import (
    cmc_softmax,
    infomin,
    infomin_linear,
    infomin_no_jigsaw,
    instance_discrimination,
    interclr,
    interclr_moco,
    local_aggregation,
    moco_v1,
    moco_v2,
    simclr,
)
from vantage.studies.lab.entry import Arm, Cell, Reason
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.two_cores import arm_at_papers_rate, two_core_run, with_temperature
from vantage.training.optimizers import SGD
from vantage.training.run import Run
from vantage.views import moco_v2_views

__all__ = ["LENGTHS", "METHODS", "SCALE", "STEPS", "STRONG_VIEWS", "WIDTHS", "with_arms"]

_PAPER_EPOCHS, _EPOCHS = 200, 4


def _arm(run: Run, paper_epochs: int = _PAPER_EPOCHS) -> Arm:
    return Arm(two_core_run(run, _EPOCHS * paper_epochs // _PAPER_EPOCHS, falling=True))


_SIMCLR = replace(simclr(32), optimizer=SGD(momentum=0.9, weight_decay=1e-4))

METHODS = {
    "NPID": _arm(instance_discrimination(32)),
    "LA": _arm(local_aggregation(32)),
    "CMC": _arm(cmc_softmax(32)),
    "MoCo": _arm(moco_v1(32)),
    "SimCLR": _arm(_SIMCLR),
    "SimCLR 1000": _arm(_SIMCLR, 1_000),
    "InterCLR": _arm(interclr(32)),
    "InterCLR, MoCo": _arm(interclr_moco(32)),
    "InterCLR, MoCo's views": _arm(replace(interclr(32), views=moco_v2_views(32, 1))),
    "InterCLR 1000": _arm(interclr(32), 1_000),
}
"""Methods by their names in the tables."""

LENGTHS = {
    "InfoMin 100": _arm(infomin(32), 100),
    "InfoMin 200": _arm(infomin(32)),
    "InfoMin 800": _arm(infomin(32), 800),
    "MoCo v2 200": _arm(moco_v2(32)),
    "MoCo v2 800": _arm(moco_v2(32), 800),
}
"""InfoMin and MoCo v2 by the paper's number of epochs."""


_STEPS = {
    "RA-CJ-Blur, linear": _arm(infomin_no_jigsaw(32)),
    "with jigsaw": _arm(infomin_linear(32)),
    "with MLP, τ .15": LENGTHS["InfoMin 200"],
    "with jigsaw, τ .15": _arm(with_temperature(infomin_linear(32), 0.15)),
    "with MLP, τ .07": _arm(with_temperature(infomin(32), 0.07)),
}
STEPS = {name: arm_at_papers_rate(arm) for name, arm in _STEPS.items()}
"""Appendix C.3 of InfoMin: jigsaw and head are added one by one. The last step changes head and τ together; the last
two arms change one of them. At four times the rate, views without a jigsaw and a
linear head at τ .07 stay at the accuracy of a random encoder."""

SCALE = "each method from scratch by its own recipe, SimCLR by SGD; 4 epochs stand for the paper's 200"
"""How these arms are trained, in words."""
STRONG_VIEWS = Reason(
    "probably its strong views: figure 12 shows that the strongest teach little in so short a run, even at a quarter of"
    " this rate"
)
"""Why InfoMin is below other methods here."""


def _with_width(factor: float) -> Arm:
    """InfoMin with this factor on the channels of every layer."""

    def wider(part: Any) -> Any:
        if isinstance(part, Convolutions):
            return replace(part, widths=tuple(round(factor * width) for width in part.widths))
        return part

    arm = LENGTHS["InfoMin 200"]
    return replace(arm, run=replace(arm.run, encoders=everywhere(arm.run.encoders, wider)))


WIDTHS = {"width × ½": _with_width(0.5), "width × 1": LENGTHS["InfoMin 200"], "width × 2": _with_width(2.0)}
"""InfoMin by the width of the network."""


def with_arms(cells: Iterable[Cell], arms: dict[str, Arm]) -> tuple[Cell, ...]:
    """A table's cells, with the arms of the methods that are trained here; arms that are not in the table come last."""
    table = {cell.name: cell for cell in cells}
    for name, arm in arms.items():
        table[name] = replace(table.get(name, Cell(name)), experiment=arm, measures=(ProtocolAccuracy(),))
    return tuple(table.values())
