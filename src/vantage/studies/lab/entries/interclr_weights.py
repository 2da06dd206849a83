"""InterCLR's λ, the share of the contrast within images (Xie et al., arXiv 2008.11702 v1, §5.2 and Appendix C):
branches of one warm base."""

# fmt: off

from dataclasses import replace

from vantage.studies.lab.entries.interclr_arms import (
    FLOORS,
    GATE,
    RARE_MATES,
    SCALE,
    commands,
    with_true_classes,
    with_weight,
)
from vantage.studies.lab.entries.paper_commands import detectors, evaluations
from vantage.studies.lab.entry import Cell, Claim, Entry, Reason, paper
from vantage.studies.lab.judging.predicates import Beats, Highest
from vantage.studies.lab.judging.shapes import Gains, InteriorPeak
from vantage.studies.lab.measures.class_structure import ClassSimilarity
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.panel import Panel

__all__ = ["ENTRIES"]

LINEAR, KNN = "linear-cached", "knn"
_LAMBDAS = {"λ 0": 0.0, "λ .25": 0.25, "λ .5": 0.5, "λ .75": 0.75, "λ 1": 1.0}
_WEIGHTED = {name: with_weight(weight) for name, weight in _LAMBDAS.items()}
_CLASSES = {f"true classes, {name}": _LAMBDAS[name] for name in ("λ .5", "λ .75")}
_WRONG_MATES = (
    Reason("most mates are of other classes: clusters harm where true classes in their place add",
        Beats("true classes, λ .75", "λ 1"), LINEAR),
)
_CONTROL = "a control with labels, which pretraining does not have: what perfect clusters would give"

_THREE_WEIGHTS = ("interclr_intra_only", "interclr_weighted", "interclr_weighted --set branches.0.weight=Constant(0.0)"
    " --set branches.1.weight=Constant(1.0)")
_TERMS = ("nearness of a class", "outliers", "silhouette", "image − class")

FIGURE_7 = Entry(
    "interclr-figure-7",
    "InterCLR",
    "Figure 7",
    "t-SNE of augmentations: intra only, inter only, both",
    cells=(
        Cell("intra", _WEIGHTED["λ 1"], (ClassSimilarity(),)),
        Cell("inter", _WEIGHTED["λ 0"], (ClassSimilarity(),)),
        Cell("both", _WEIGHTED["λ .75"], (ClassSimilarity(),)),
    ),
    claims=(
        Claim("1", "inter brings images of a class closer together than intra does", "§5.2", (Beats("inter", "intra"),),
            (), _TERMS[0]),
        Claim("2", "inter alone has more outliers than both", "§5.2", (Beats("inter", "both"),), (), _TERMS[1]),
        Claim("3", "both, within and between images, separate classes best", "§5.2",
            (Highest("both", ("intra", "inter")),), (), _TERMS[2],
            note=RARE_MATES,
            reasons=(
                Reason("most mates are of other classes, so images of different classes are drawn together",
                    Beats("both @ similarity between classes", "intra @ similarity between classes"), _TERMS[2]),
                Reason("too small a share of the contrast between images: with nothing else the silhouette is lowest",
                    Beats("both", "inter"), _TERMS[2], True),
            )),
        Claim("4", "intra separates images of a class more than inter does", "§5.2", (Beats("intra", "inter"),), (),
            _TERMS[3]),
    ),
    panels=tuple(Panel(term, {"": ("intra", "inter", "both")}, y_label="outliers (%)" if term == _TERMS[1] else "")
        for term in _TERMS),
    map_of=("intra", "inter", "both"),
    commands=(*commands(*_THREE_WEIGHTS), "vantage analyse classes runs/interclr_intra_only runs/interclr_weighted_2"
        " runs/interclr_weighted --data IMAGENET#val"),
    scale=f"{SCALE}; figure 8's λ 1, 0 and .75; 8 augmentations of 512 test images, in numbers; a map shows"
    " some of them: claim 1 by (class − others)/(image − others) of mean cosines,"
    " 2 by the class of the nearest other image",
)

_VOC = {"λ .75": 81.8, "λ 1": 80.7}

FIGURE_8 = Entry(
    "interclr-figure-8",
    "InterCLR",
    "Figure 8",
    "λ, the share of the contrast within images",
    cells=(
        *FLOORS,
        *(
            Cell(name, one, (ProtocolAccuracy(),), {"VOC07": _VOC[name]} if name in _VOC else {})
            for name, one in _WEIGHTED.items()
        ),
        *(Cell(name, with_true_classes(weight), (ProtocolAccuracy(),)) for name, weight in _CLASSES.items()),
    ),
    claims=(
        Claim("1", "λ .75 is best", "App. C", (Highest("λ .75", ("λ 0", "λ .25", "λ .5", "λ 1")),), ("VOC07",), LINEAR,
            True, reasons=_WRONG_MATES),
        Claim("2", "the best λ lies inside", "App. C", (InteriorPeak(tuple(_LAMBDAS)),), ("VOC07",), LINEAR, True,
            reasons=_WRONG_MATES),
        Claim("3", "λ .75 is above λ 1", "App. C", (Beats("λ .75", "λ 1"),), ("VOC07",), LINEAR, True,
            part_of="claim 1", reasons=_WRONG_MATES),
        Claim("4", "λ .75 is above λ 0", "App. C", (Beats("λ .75", "λ 0"),), ("VOC07",), LINEAR, True,
            part_of="claim 1"),
        Claim("a", "with the true classes in place of clusters, the contrast between images adds to that within them",
            "ours", tuple(Beats(name, "λ 1") for name in _CLASSES), (), LINEAR, True, note=_CONTROL),
        Claim("b", "true classes are above clusters, at the same λ", "ours",
            tuple(Beats(name, name.removeprefix("true classes, ")) for name in _CLASSES), (), LINEAR, True,
            note=_CONTROL),
    ),
    gate=GATE,
    scale=f"{SCALE}; random negatives, no margin",
    commands=commands(*_THREE_WEIGHTS, *(f"interclr_weighted --set branches.0.weight=Constant({share}) --set"
        f" branches.1.weight=Constant({1 - share})" for share in (0.25, 0.5))),
    panels=(
        Panel(LINEAR, {"clusters": _LAMBDAS, "true classes": _CLASSES}, "λ", paper_columns=("VOC07",),
            paper_label="VOC07, SVM, mAP (%)", reference_lines=("base",)),
        Panel(KNN, {"clusters": _LAMBDAS, "true classes": _CLASSES}, "λ", reference_lines=("base",)),
    ),
)

_AS_FIGURE_8 = (Reason("most mates are of other classes: claim a of figure 8 has the control with true classes"),)
_TABLE_4 = paper(
    "Places205 / VOC07 / low-shot / AP50", ("λ 1", 50.3, 80.7, 59.8, 79.7), ("λ .75", 51.2, 81.8, 63.9, 80.4)
)

TABLE_4 = Entry(
    "interclr-table-4",
    "InterCLR",
    "Table 4",
    "with and without the contrast between images",
    cells=(*FLOORS, *(replace(one, experiment=_WEIGHTED[one.name],
        measures=(ProtocolAccuracy(),)) for one in _TABLE_4)),
    claims=(
        Claim("1", "λ .75 is above λ 1, each column", "App. C", (Beats("λ .75", "λ 1"),), tuple(_TABLE_4[0].paper),
            LINEAR, True, part_of="claim 1 of interclr-figure-8",
            note="by a linear classifier on the pretraining images, in place of four other tasks",
            reasons=_AS_FIGURE_8),
        Claim("2", "InterCLR's gain is largest in low-shot", "numbers",
            tuple(Gains(("λ .75 @ low-shot", "λ 1 @ low-shot"), (f"λ .75 @ {c}", f"λ 1 @ {c}"))
                for c in ("Places205", "VOC07", "AP50")), ("low-shot",),
            note="Places205, VOC07 and detection are not judged here: claim 2 of interclr-figure-5 has few shots"),
        Claim("a", "λ .75 is above λ 1 by nearest neighbors", "ours", (Beats("λ .75", "λ 1"),), (), KNN, True,
            reasons=_AS_FIGURE_8),
    ),
    gate=GATE,
    scale=f"{SCALE}; random negatives, no margin",
    commands=(*commands(*_THREE_WEIGHTS[:2]), *evaluations("linear-places", _THREE_WEIGHTS[:2], "PLACES205"),
        *evaluations("lowshot", _THREE_WEIGHTS[:2], "VOC07"), *detectors(_THREE_WEIGHTS[:2])),
    panels=(
        Panel(LINEAR, {"": ("base", "λ 1", "λ .75")}, paper_columns=tuple(_TABLE_4[0].paper),
            paper_label="top-1 or mAP (%)"),
        Panel(KNN, {"": ("base", "λ 1", "λ .75")}),
    ),
)

ENTRIES = (FIGURE_7, FIGURE_8, TABLE_4)
"""InterCLR's studies of λ, in the paper's order."""
