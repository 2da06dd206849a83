"""Ring against its bases on the paper's own smallest set (Wu et al., arXiv 2010.02037, Table 1a). Our CIFAR-10 was
recompressed as JPEG."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.entries.cnce_arms import (
    CMC_BASE,
    CMC_GATE,
    FALSE,
    IR_BASE,
    IR_GATE,
    KNN,
    LINEAR,
    MOCO_BASE,
    MOCO_GATE,
    ROWS,
    TABLE_1_ARMS,
    band_terms,
    by_band,
    falling,
    table_1_cell,
)
from vantage.studies.lab.entries.paper_commands import judged, ring_training
from vantage.studies.lab.entry import Cell, Claim, Entry
from vantage.studies.lab.judging.predicates import Beats
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.two_cores import floors, on_images, own_floors

__all__ = ["TABLE_1A"]

_SET = "CIFAR-10"
_BASES = {name: on_images(arm, "cifar-10") for name, arm in (("MoCo", MOCO_BASE), ("IR", IR_BASE), ("CMC", CMC_BASE))}
_BASE_CELLS = tuple(Cell(f"{name} base", arm, (ProtocolAccuracy(),)) for name, arm in _BASES.items())
_PAPER = {"MoCo": 83.1, "MoCoRing": 86.1, "IR": 81.2, "IRing": 83.9, "CMC": 85.6, "CMCRing": 87.6}
_CELLS = {
    name: replace(table_1_cell(name, on_images(branch, "cifar-10")), paper={_SET: _PAPER[name]})
    for name, branch in TABLE_1_ARMS.items()
}

TABLE_1A = Entry(
    "cnce-table-1a",
    "CNCE",
    "Table 1a",
    "ring negatives against their bases on CIFAR-10 (JPEG)",
    cells=(
        *floors(_BASES["MoCo"]),
        *own_floors("IR", _BASES["IR"]),
        *own_floors("CMC", _BASES["CMC"]),
        *_BASE_CELLS,
        *_CELLS.values(),
    ),
    claims=(
        Claim("1, MoCo", "MoCoRing is above MoCo on CIFAR-10", "§5", (Beats("MoCoRing", "MoCo"),), (_SET,), LINEAR,
            True),
        Claim("1, IR", "IRing is above IR on CIFAR-10", "§5", (Beats("IRing", "IR"),), (_SET,), LINEAR, True,
            gates=(IR_GATE,)),
        Claim("1, CMC", "CMCRing is above CMC on CIFAR-10", "§5", (Beats("CMCRing", "CMC"),), (_SET,), LINEAR, True,
            gates=(CMC_GATE,)),
        Claim("a", "with ten classes too, the nearer a band of negatives, the more of its images are of the query's"
            " class", "§4, ours", (falling("MoCo"), falling("IR")), (), FALSE),
        Claim("b", "MoCoRing's band (1 to 10 %) holds more false negatives than chance", "ours",
            (Beats(band_terms("MoCoRing", "1 to 10 %")[0], f"MoCoRing @ {FALSE}"),), (), FALSE),
    ),
    commands=judged("linear-ring", (ring_training(recipe, "CIFAR10") for recipe in
        ("ring_ir", "cnce_ir", "ring_moco", "cnce_moco", "ring_cmc", "cnce_cmc")), "CIFAR10"),
    gate=MOCO_GATE,
    panels=(
        Panel(LINEAR, ROWS, paper_columns=(_SET,), paper_label="ResNet-18, top-1 (%)"),
        Panel(KNN, ROWS),
        by_band(_CELLS),
    ),
    scale="as cnce-table-1, on 7,500 images of CIFAR-10, which was recompressed as JPEG",
)
"""Table 1a."""
