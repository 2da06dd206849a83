"""InterCLR's studies (Xie et al., arXiv 2008.11702 v1, §5.2 and Appendix C): branches of one warm base."""

# fmt: off

from vantage.recipes.interclr_study import interclr_hard, interclr_semi_easy, interclr_semi_hard
from vantage.studies.lab.entries.interclr_arms import (
    BETWEEN_NEGATIVES,
    EPOCHS,
    FLOORS,
    GATE,
    NEVER,
    SCALE,
    arm,
    commands,
    every_epoch,
    with_margins,
    with_offline_labels,
    with_weight,
)
from vantage.studies.lab.entry import Cell, Claim, Entry, Reason
from vantage.studies.lab.judging.predicates import Beats, Order
from vantage.studies.lab.judging.shapes import Correlation
from vantage.studies.lab.measures.class_structure import ClusterAgreement
from vantage.studies.lab.measures.each_kept_epoch import EachKeptEpoch
from vantage.studies.lab.measures.vectors import FalseByBand, ProtocolAccuracy
from vantage.studies.lab.panel import Panel

__all__ = ["ENTRIES"]

LINEAR, KNN, STALE, FALSE = "linear-cached", "knn", "stale labels", "false negatives, all"
_ONLINE, _SEMI_HARD = with_weight(0.5), arm(interclr_semi_hard(32))

_LABELS = ("online", "offline", "never again")
_LABEL_MEASURES = (ProtocolAccuracy(), ClusterAgreement(), EachKeptEpoch())

FIGURE_6A = Entry(
    "interclr-figure-6a",
    "InterCLR",
    "Figure 6a",
    "online labels against offline ones",
    cells=(
        *FLOORS,
        Cell("online", every_epoch(_ONLINE), _LABEL_MEASURES),
        Cell("offline", every_epoch(with_offline_labels(1)), _LABEL_MEASURES),
        Cell("never again", with_offline_labels(NEVER), (ProtocolAccuracy(), ClusterAgreement())),
    ),
    claims=(
        Claim("1", "at the end, online is above offline", "§5.2", (Beats("online", "offline"),), (), LINEAR, True),
        Claim("2", "online is above offline on average over the epochs too", "§5.2",
            (Beats("online", "offline"),), (), f"{LINEAR}, all epochs", True),
        Claim("a", "the more rarely labels are renewed, the more of them are stale", "ours",
            (Order(_LABELS),), (), STALE),
        Claim("b", "online labels agree better with the classes than the initial labels", "ours",
            (Beats("online", "never again"),), (), "true mates"),
    ),
    gate=GATE,
    panels=(
        Panel(LINEAR, {"": ("base", *_LABELS)}),
        Panel(LINEAR, {labels: {f"{labels} @ {LINEAR}, epoch {epoch}": epoch for epoch in range(1, EPOCHS + 1)}
            for labels in _LABELS[:2]}, "epochs since the warm base"),
        Panel(STALE, {"": _LABELS}, y_label="stale labels (%)"),
        Panel("true mates", {"": _LABELS}, y_label="mates of the image's class (%)"),
    ),
    commands=commands("interclr_random", "interclr_offline"),
    scale=f"{SCALE}; λ .5, no margin; offline labels are renewed after every epoch, or never",
)

_FALSE = FalseByBand(temperature=0.1, edges=(0.0, 0.02, 0.1, 0.9, 1.0))
_BANDS = tuple(f"random @ false negatives, {band}" for band in ("90 to 100 %", "all", "2 to 10 %", "0 to 2 %"))
_NEAR = (
    Reason("false negatives: beyond the nearest 2 % too, the tenth from which semi-hard ones are drawn holds more"
        " images of the query's class than all rows do",
        Beats("random @ false negatives, 2 to 10 %", "random @ false negatives, all"), FALSE),
    Reason("a contrast between images that harms with any negatives: with random ones the branch is above its base",
        Beats("random", "base"), LINEAR, True),
)

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
            (), LINEAR, True, reasons=_NEAR),
        Claim("2", "semi-hard is above semi-easy", "§5.2", (Beats("semi-hard", "semi-easy"),), (), LINEAR, True,
            reasons=_NEAR),
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
    scale=f"{SCALE}; λ .5, semi-hard negatives. A margin m with k times fewer negatives weighs as m − τ ln k"
    " does: m − .07 within, m − .35 between",
)

ENTRIES = (FIGURE_6A, FIGURE_6B, FIGURE_6C)
"""InterCLR's studies of labels, negatives and margins, in the paper's order."""
