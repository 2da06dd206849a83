"""The arms of CNCE's tables and figures on two cores (Wu et al., arXiv 2010.02037): warm bases, and their branches."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vantage.composition.fitting import everywhere
from vantage.memory import Bank, ReclusteredBank
from vantage.negatives import Ball, Ring, Sample
from vantage.recipes import cmc_softmax, instance_discrimination, moco_v1, ring_cmc, ring_ir, ring_moco
from vantage.schedules import Constant
from vantage.studies.lab.entry import Arm, Cell
from vantage.studies.lab.judging.predicates import Order
from vantage.studies.lab.measures.vectors import FalseByBand, ProtocolAccuracy
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import (
    QUEUE,
    Scale,
    arm_at_papers_rate,
    base,
    branch,
    floors,
    gate,
    own_floors,
    two_core_run,
    with_temperature,
)
from vantage.training.run import Run

__all__ = [
    "CMC",
    "CMC_BASE",
    "CMC_FLOORS",
    "CMC_GATE",
    "FALSE",
    "FLOORS",
    "IR",
    "IR_BASE",
    "IR_FLOORS",
    "IR_GATE",
    "KNN",
    "LINEAR",
    "LONG_IR",
    "LONG_IR_FLOORS",
    "LONG_IR_GATE",
    "MOCO",
    "MOCO_BASE",
    "MOCO_GATE",
    "MEASURES",
    "PAIRS",
    "ROWS",
    "TABLE_1_ARMS",
    "arm",
    "band_terms",
    "by_band",
    "falling",
    "from_scratch",
    "long_arm",
    "table_1_cell",
]

_USUAL = Scale()
LINEAR, KNN, FALSE = "linear-cached", "knn", "false negatives, all"
MEASURES = (ProtocolAccuracy(), FalseByBand())
"""What is measured on every arm of Table 1."""


def _equalize_draws(run: Run, anneal: bool = False) -> Run:
    """The run with as many negatives and the same bank as every other arm, so that arms differ only in where their
    negatives lie. Since the base is warm, its rows are clustered at the start, and a band has its last width from the
    first step; with `anneal`, both follow the recipe."""

    def equalize(part: Any) -> Any:
        match part:
            case Sample():
                return Sample(QUEUE)
            case Ring() | Ball() if not anneal:
                return replace(part, keep=Constant(0.1))
            case Bank():
                return Bank(0.5)
            case ReclusteredBank():
                return replace(part, momentum=0.5, first=part.first if anneal else 0)
        return part

    return replace(run, branches=everywhere(run.branches, equalize))


def arm(run: Run, start: Arm | None = None) -> Arm:
    """A base; with `start`, a branch that continues that base under another recipe."""
    plain = branch(run, start) if start else base(run)
    return replace(plain, run=_equalize_draws(plain.run))


def from_scratch(run: Run, epochs: int = 4, falling: bool = False, scale: Scale = _USUAL) -> Arm:
    """A recipe trained from scratch; the annealing of its band is fitted to the short run."""
    return Arm(_equalize_draws(two_core_run(run, epochs, falling, scale), anneal=True))


def long_arm(run: Run) -> Arm:
    """A recipe trained from scratch, long enough for the nearest keys to mean something while the ring still narrows.
    At this length IR learns more at the papers' rate than at four times that."""
    return arm_at_papers_rate(from_scratch(run, 24, falling=True))


IR = with_temperature(instance_discrimination(32), 0.07)
"""Instance discrimination at Ring's τ."""
MOCO = moco_v1(32)
"""MoCo, which uses the same τ."""
CMC = with_temperature(cmc_softmax(32), 0.07)
"""CMC at Ring's τ."""
LONG_IR = long_arm(IR)
"""The base of long arms."""
MOCO_BASE, IR_BASE, CMC_BASE = arm(MOCO), arm(IR), arm(CMC)

TABLE_1_ARMS = {
    "MoCo": arm(MOCO, MOCO_BASE),
    "MoCoRing": arm(ring_moco(32), MOCO_BASE),
    "IR": arm(IR, IR_BASE),
    "IRing": arm(ring_ir(32), IR_BASE),
    "CMC": arm(CMC, CMC_BASE),
    "CMCRing": arm(ring_cmc(32), CMC_BASE),
}
"""The branches of Table 1, by the name of their row."""
PAIRS = (("IRing", "IR"), ("CMCRing", "CMC"), ("MoCoRing", "MoCo"))
"""Each ring and the method that it is compared with."""
ROWS = {base: (f"{base} base", base, ring) for ring, base in PAIRS}
"""What continues each base, in the order of a picture's rows."""

FLOORS = floors(MOCO_BASE)
"""The cells that MoCo's base must be above."""
IR_FLOORS, CMC_FLOORS = own_floors("IR", IR_BASE), own_floors("CMC", CMC_BASE)
"""The same for the bases of IR and CMC, which have views and networks of their own."""
LONG_IR_FLOORS, LONG_IR_GATE = own_floors("IR", LONG_IR), gate("IR", "IR")
"""The floors and the gate of long arms, whose base is the row IR itself."""
MOCO_GATE, IR_GATE, CMC_GATE = gate("MoCo base"), gate("IR base", "IR"), gate("CMC base", "CMC")
"""The gate of each base."""


def table_1_cell(name: str, arm: Arm) -> Cell:
    """A cell with all the measures of Table 1's cells."""
    return Cell(name, arm, MEASURES)


def band_terms(cell: str, *names: str) -> tuple[str, ...]:
    """Terms: the share of false negatives in bands of ranks."""
    return tuple(f"{cell} @ false negatives, {name}" for name in names)


_UP_TO = (1, 10, 25, 50, 100)
_BANDS = tuple(f"{low} to {high} %" for low, high in zip((0, *_UP_TO), _UP_TO, strict=False))


def falling(cell: str) -> Order:
    """The nearer a band, the more false negatives it holds."""
    return Order(band_terms(cell, "10 to 25 %", "1 to 10 %", "0 to 1 %"))


def by_band(cells: Iterable[str]) -> Panel:
    """The share of false negatives by band, for each of these cells; MoCo's, over all ranks, is the line."""
    return Panel(
        FALSE,
        {name: dict(zip(band_terms(name, *_BANDS), _UP_TO, strict=True)) for name in cells},
        "up to rank (%), nearest first",
        y_label="of the query's class (%)",
        reference_lines=(f"MoCo @ {FALSE}",),
    )
