"""InterCLR's studies (Xie et al., arXiv 2008.11702 v1, §5.2 and Appendix C): branches of one warm base."""

# fmt: off

from dataclasses import replace

from vantage.recipes.interclr_study import interclr_hard, interclr_semi_easy, interclr_semi_hard
from vantage.studies.lab.entries.interclr_arms import (
    BETWEEN_NEGATIVES,
    FLOORS,
    GATE,
    LONGER,
    NEVER,
    RARE_MATES,
    SCALE,
    arm,
    commands,
    longer,
    with_margins,
    with_offline_labels,
    with_weight,
)
from vantage.studies.lab.entries.paper_commands import detectors, evaluations
from vantage.studies.lab.entry import Cell, Claim, Entry, Reason, paper
from vantage.studies.lab.judging.predicates import Beats, Highest, Order
from vantage.studies.lab.judging.shapes import Correlation, Gains, InteriorPeak
from vantage.studies.lab.measures.class_structure import ClassSimilarity, ClusterAgreement
from vantage.studies.lab.measures.each_kept_epoch import EachKeptEpoch
from vantage.studies.lab.measures.vectors import FalseByBand, ProtocolAccuracy
from vantage.studies.lab.panel import Panel

__all__ = ["ENTRIES"]

LINEAR, KNN, STALE, FALSE = "linear-cached", "knn", "stale labels", "false negatives, all"
_LAMBDAS = {"λ 0": 0.0, "λ .25": 0.25, "λ .5": 0.5, "λ .75": 0.75, "λ 1": 1.0}
_WEIGHTED = {name: with_weight(weight) for name, weight in _LAMBDAS.items()}
_ONLINE, _SEMI_HARD = _WEIGHTED["λ .5"], arm(interclr_semi_hard(32))

_LABELS = ("online", "offline", "never again")

FIGURE_6A = Entry(
    "interclr-figure-6a",
    "InterCLR",
    "Figure 6a",
    "online labels against offline ones",
    cells=(
        *FLOORS,
        Cell("online", _ONLINE, (ProtocolAccuracy(), ClusterAgreement())),
        Cell("offline", with_offline_labels(1), (ProtocolAccuracy(), ClusterAgreement())),
        Cell("never again", with_offline_labels(NEVER), (ProtocolAccuracy(), ClusterAgreement())),
        Cell("online, longer", longer(_ONLINE), (EachKeptEpoch(),)),
        Cell("offline, longer", longer(with_offline_labels(1)), (EachKeptEpoch(),)),
    ),
    claims=(
        Claim("1", "at the end, online is above offline", "§5.2", (Beats("online", "offline"),), (), LINEAR, True),
        Claim("2", "online is above offline on average over the epochs too", "§5.2",
            (Beats("online, longer", "offline, longer"),), (), f"{LINEAR}, all epochs", True,
            note=f"branches of {LONGER} epochs, judged after each"),
        Claim("a", "the more rarely labels are renewed, the more of them are stale", "ours",
            (Order(_LABELS),), (), STALE),
        Claim("b", "online labels agree better with the classes than the initial labels", "ours",
            (Beats("online", "never again"),), (), "true mates"),
    ),
    gate=GATE,
    panels=(
        Panel(LINEAR, {"": ("base", *_LABELS)}),
        Panel(LINEAR, {labels: {f"{labels}, longer @ {LINEAR}, epoch {epoch}": epoch for epoch in
            range(1, LONGER + 1)} for labels in _LABELS[:2]}, "epochs since the warm base"),
        Panel(STALE, {"": _LABELS}, y_label="stale labels (%)"),
        Panel("true mates", {"": _LABELS}, y_label="mates of the image's class (%)"),
    ),
    commands=commands("interclr_random", "interclr_offline"),
    scale=f"{SCALE}; λ .5, no margin; offline labels are renewed after every epoch, or never",
)

_FALSE = FalseByBand(temperature=0.1, edges=(0.0, 0.02, 0.1, 0.9, 1.0))
_BANDS = tuple(f"random @ false negatives, {band}" for band in ("90 to 100 %", "all", "2 to 10 %", "0 to 2 %"))

FIGURE_6B = Entry(
    "interclr-figure-6b",
    "InterCLR",
    "Figure 6b",
    "hard, semi-hard, random and semi-easy negatives",
    cells=(
        *FLOORS,
        Cell("hard", arm(interclr_hard(32)), (ProtocolAccuracy(),)),
        Cell("semi-hard", _SEMI_HARD, (ProtocolAccuracy(),)),
        Cell("random", _ONLINE, (ProtocolAccuracy(), _FALSE)),
        Cell("semi-easy", arm(interclr_semi_easy(32)), (ProtocolAccuracy(),)),
    ),
    claims=(
        Claim("1", "semi-hard is above random, random above hard", "§5.2", (Order(("hard", "random", "semi-hard")),),
            (), LINEAR, True),
        Claim("2", "semi-hard is above semi-easy", "§5.2", (Beats("semi-hard", "semi-easy"),), (), LINEAR, True),
        Claim("a", "why: the nearer the negatives, the more of them are of the query's class", "§1", (Order(_BANDS),),
            (), FALSE),
    ),
    gate=GATE,
    panels=(
        Panel(LINEAR, {"": ("base", "hard", "semi-hard", "random", "semi-easy")}),
        Panel(FALSE, {"": {f"random @ false negatives, {low} to {up} %": up
            for low, up in ((0, 2), (2, 10), (10, 90), (90, 100))}}, "up to rank (%), nearest first",
            y_label="of the query's class (%)", reference_lines=(f"random @ {FALSE}",)),
    ),
    commands=commands("interclr_hard", "interclr_semi_hard", "interclr_random", "interclr_semi_easy"),
    scale=f"{SCALE}; λ .5, no margin; hard: the nearest {BETWEEN_NEGATIVES} of other clusters; semi-hard and"
    " semi-easy: drawn from a tenth",
)

_MARGIN = {f"within {m:g}": with_margins(m, 0.0) for m in (-0.3, 0.35, 0.55)} | {
    f"between {m:g}": with_margins(0.0, m) for m in (-0.5, -0.3, -0.1, 0.15, 0.35)
}
_NEGATIVE = ("no margin", "between -0.1", "between -0.3", "between -0.5")

FIGURE_6C = Entry(
    "interclr-figure-6c",
    "InterCLR",
    "Figure 6c",
    "margins within and between images",
    cells=(
        *FLOORS,
        Cell("no margin", _SEMI_HARD, (ProtocolAccuracy(),)),
        *(Cell(name, one, (ProtocolAccuracy(),)) for name, one in _MARGIN.items()),
    ),
    claims=(
        Claim("1", "within: .35 is above 0", "§5.2", (Beats("within 0.35", "no margin"),), (), LINEAR, True),
        Claim("2", "within: a negative margin is below 0", "§5.2", (Beats("no margin", "within -0.3"),), (), LINEAR,
            True),
        Claim("3", "between: every margin is above none", "§5.2",
            tuple(Beats(name, "no margin") for name in _MARGIN if name.startswith("between")), (), LINEAR, True),
        Claim("4", "between, negative: the larger, the better", "§5.2",
            (Correlation(_NEGATIVE, (0.0, 0.1, 0.3, 0.5)),), (), LINEAR, True),
        Claim("5", "between, positive: not monotone", "§5.2", (),
            note="a line that fluctuates has no direction that cells could contradict: the picture shows it"),
        Claim("a", "within: .55, which weighs at least as much as .35 with the paper's negatives, is above 0", "ours",
            (Beats("within 0.55", "no margin"),), (), LINEAR, True),
    ),
    gate=GATE,
    panels=(
        Panel(LINEAR, {kind: {"no margin": 0.0} | {name: float(name.split()[1]) for name in _MARGIN
            if name.startswith(kind)} for kind in ("within", "between")}, "margin", reference_lines=("base",)),
    ),
    commands=commands("interclr_semi_hard", "interclr_intra_margin", "interclr_inter_margin", *(
        f"interclr_semi_hard --set branches.1.estimator.margin={m}" for m in (-0.3, -0.1, 0.15, 0.35))),
    scale=f"{SCALE}; λ .5, semi-hard negatives. A margin m with k times fewer negatives weighs as m − τ ln k does: m −"
    " .07 within, m − .35 between",
)

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
        Claim("2", "inter has more outliers than both", "§5.2", (Beats("inter", "both"),), (), _TERMS[1]),
        Claim("3", "both separates classes best", "§5.2", (Highest("both", ("intra", "inter")),), (), _TERMS[2],
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
    commands=(*commands(*_THREE_WEIGHTS), "vantage analyse classes runs/interclr_intra_only runs/interclr_weighted_2"
        " runs/interclr_weighted --data IMAGENET#val"),
    scale=f"{SCALE}; figure 8's λ 1, 0 and .75; 8 augmentations of 512 test images, in numbers instead of a picture,"
    " which `vantage analyse classes` draws of any runs: claim 1 by (class − others)/(image − others) of mean cosines,"
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
    ),
    claims=(
        Claim("1", "λ .75 is best", "App. C", (Highest("λ .75", ("λ 0", "λ .25", "λ .5", "λ 1")),), ("VOC07",), LINEAR,
            True),
        Claim("2", "the best λ lies inside", "App. C", (InteriorPeak(tuple(_LAMBDAS)),), ("VOC07",), LINEAR, True),
        Claim("3", "λ .75 is above λ 1", "App. C", (Beats("λ .75", "λ 1"),), ("VOC07",), LINEAR, True),
        Claim("4", "λ .75 is above λ 0", "App. C", (Beats("λ .75", "λ 0"),), ("VOC07",), LINEAR, True),
    ),
    gate=GATE,
    scale=f"{SCALE}; random negatives, no margin",
    commands=commands(*_THREE_WEIGHTS, *(f"interclr_weighted --set branches.0.weight=Constant({share}) --set"
        f" branches.1.weight=Constant({1 - share})" for share in (0.25, 0.5))),
    panels=(
        Panel(LINEAR, {"": _LAMBDAS}, "λ", paper_columns=("VOC07",), paper_label="VOC07, SVM, mAP (%)",
            reference_lines=("base",)),
        Panel(KNN, {"": _LAMBDAS}, "λ", reference_lines=("base",)),
    ),
)

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
            LINEAR, True, note="by a linear classifier on the pretraining images, in place of four other tasks"),
        Claim("2", "the gain is largest in low-shot", "numbers", tuple(Gains(("λ .75 @ low-shot", "λ 1 @ low-shot"),
            (f"λ .75 @ {c}", f"λ 1 @ {c}")) for c in ("Places205", "VOC07", "AP50")), ("low-shot",),
            note="Places205, VOC07 and detection are not judged here: claim 2 of interclr-figure-5 has few shots"),
        Claim("a", "λ .75 is above λ 1 by nearest neighbors", "ours", (Beats("λ .75", "λ 1"),), (), KNN, True),
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

ENTRIES = (FIGURE_6A, FIGURE_6B, FIGURE_6C, FIGURE_7, FIGURE_8, TABLE_4)
"""InterCLR's studies, in the paper's order."""
