"""Clusters as Ring's negatives and positives (Wu et al., arXiv 2010.02037, Table 6, Appendix F)."""

# fmt: off

from dataclasses import replace

from vantage.recipes import cave_cmc, cave_ir, cnce_la, ring_cmc, ring_cmc_clusters, ring_ir, ring_ir_clusters
from vantage.studies.lab.entries.cnce_arms import (
    CMC,
    CMC_BASE,
    CMC_FLOORS,
    CMC_GATE,
    FALSE,
    LINEAR,
    LONG_IR,
    LONG_IR_FLOORS,
    LONG_IR_GATE,
    MEASURES,
    arm,
    band_terms,
    long_arm,
)
from vantage.studies.lab.entries.paper_commands import judged, ring_training
from vantage.studies.lab.entry import Cell, Claim, Entry, Reason, paper
from vantage.studies.lab.judging.predicates import Above, Beats
from vantage.studies.lab.measures.class_structure import ClusterAgreement
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.panel import Panel

__all__ = ["TABLE_6"]

_TABLE_6 = paper(
    "CIFAR-10",
    ("LA", 83.9),
    ("IR", 81.2),
    ("CMC", 85.6),
    ("IRing", 83.9),
    ("CMCRing", 87.6),
    ("IRCave", 84.0),
    ("CMCCave", 87.2),
    ("IRing (+C)", 84.3),
    ("CMCRing (+C)", 87.8),
)
_CLUSTER_MEASURES = (ProtocolAccuracy(), ClusterAgreement())
_ARMS = {
    "LA": (long_arm(cnce_la(32)), (ProtocolAccuracy(),)),
    "IR": (LONG_IR, (ProtocolAccuracy(),)),
    "IRing": (long_arm(ring_ir(32)), MEASURES),
    "IRCave": (long_arm(cave_ir(32)), _CLUSTER_MEASURES),
    "IRing (+C)": (long_arm(ring_ir_clusters(32)), _CLUSTER_MEASURES),
    "CMC": (arm(CMC, CMC_BASE), MEASURES),
    "CMCRing": (arm(ring_cmc(32), CMC_BASE), MEASURES),
    "CMCCave": (arm(cave_cmc(32), CMC_BASE), _CLUSTER_MEASURES),
    "CMCRing (+C)": (arm(ring_cmc_clusters(32), CMC_BASE), _CLUSTER_MEASURES),
}


def _ours(cell: Cell) -> Cell:
    if cell.name not in _ARMS:
        return cell
    experiment, measures = _ARMS[cell.name]
    return replace(cell, experiment=experiment, measures=measures)


_ROWS = {
    "IR": ("LA", "IR", "IRing", "IRCave", "IRing (+C)"),
    "CMC": ("CMC base", "CMC", "CMCRing", "CMCCave", "CMCRing (+C)"),
}
_MATES = "true mates"
_WRONG_MATES = (
    Reason("nine of ten mates are of other classes, and are drawn together all the same",
        Above(f"IRing (+C) @ {_MATES}", 10.0, below=True), _MATES),
    Reason("clusters that mean little: most images are nearest to another centroid once the network is trained",
        Above("IRing (+C) @ stale labels", 50.0), "stale labels"),
)
_NEAR_NEGATIVES = (
    Reason("clusters that say little of classes: nine of ten of their images are not of the query's class, and the"
        " others are false negatives, more than among all images",
        Above(f"IRCave @ {_MATES}", 10.0, below=True), _MATES),
)

TABLE_6 = Entry(
    "cnce-table-6",
    "CNCE",
    "Table 6",
    "negatives from the query's cluster, and its cluster as positives",
    cells=(*LONG_IR_FLOORS, *CMC_FLOORS, Cell("CMC base", CMC_BASE, (ProtocolAccuracy(),)), *map(_ours, _TABLE_6)),
    claims=(
        Claim("1, IR", "IR: Cave is above its base", "Appendix F", (Beats("IRCave", "IR"),), ("CIFAR-10",), LINEAR,
            True, reasons=_NEAR_NEGATIVES),
        Claim("1, CMC", "CMC: Cave is above its base", "Appendix F", (Beats("CMCCave", "CMC"),), ("CIFAR-10",), LINEAR,
            True, gates=(CMC_GATE,)),
        Claim("2, IR", "IR: clusters as positives add to a ring", "Appendix F", (Beats("IRing (+C)", "IRing"),),
            ("CIFAR-10",), LINEAR, True, reasons=_WRONG_MATES),
        Claim("2, CMC", "CMC: clusters as positives add to a ring", "Appendix F", (Beats("CMCRing (+C)", "CMCRing"),),
            ("CIFAR-10",), LINEAR, True, gates=(CMC_GATE,)),
        Claim("3, IR", "IR: Cave, and clusters as positives of a ring, are above local aggregation", "Appendix F",
            (Beats("IRCave", "LA"), Beats("IRing (+C)", "LA")), ("CIFAR-10",), LINEAR, True, reasons=_WRONG_MATES),
        Claim("3, CMC", "CMC: Cave, and clusters as positives of a ring, are above local aggregation", "Appendix F",
            (Beats("CMCCave", "LA"), Beats("CMCRing (+C)", "LA")), ("CIFAR-10",),
            note="local aggregation is trained on IR's views and network, and longer than CMC's arms here: claim 3, IR"
            " compares arms of one length"),
        Claim("4, IR", "IR's Cave is above its ring", "numbers", (Beats("IRCave", "IRing"),), ("CIFAR-10",), LINEAR,
            True),
        Claim("4, CMC", "CMC's Cave is not above its ring", "numbers", (Beats("CMCRing", "CMCCave"),), ("CIFAR-10",),
            LINEAR, True, gates=(CMC_GATE,)),
        Claim("a", "IRing is above local aggregation: claim 3 of table 1 for IR", "§5", (Beats("IRing", "LA"),),
            ("CIFAR-10",), LINEAR, True),
        Claim("b", "Cave's negatives are more often of the query's class than the ring's", "ours",
            (Beats(f"IRCave @ {_MATES}", band_terms("IRing", "1 to 10 %")[0]),), (), _MATES),
        Claim("c", "mates that become positives are of the query's class more often than other images", "ours",
            (Beats(f"IRing (+C) @ {_MATES}", f"IRing @ {FALSE}"),), (), _MATES),
    ),
    commands=judged("linear-ring", map(ring_training, ("cnce_la", "cnce_ir", "ring_ir", "cave_ir", "ring_ir_clusters",
        "cnce_cmc", "ring_cmc", "cave_cmc", "ring_cmc_clusters")), "CIFAR10"),
    gate=LONG_IR_GATE,
    panels=(
        Panel(LINEAR, _ROWS, paper_columns=("CIFAR-10",),
            paper_label="CIFAR-10, ResNet-18, top-1 (%)"),
        Panel(_MATES, {"IR": ("IRCave", "IRing (+C)"), "CMC": ("CMCCave", "CMCRing (+C)")},
            y_label="mates of the query's class (%)"),
    ),
    scale="the arms of IR and local aggregation are those of cnce-table-2: from scratch, at the papers' rate, which"
    " falls to 0, with rings annealed over the first third, and clusters made anew after each epoch; those of CMC are"
    " one epoch from a warm base, whose rows are clustered before the first step, with keep .1; 58 clusters for Cave,"
    " 178 for +C, ten times 178 for local aggregation, which looks at the nearest 1,875 rows; equally many draws for"
    " the others",
)
"""Table 6: the query's cluster as negatives and as positives."""
