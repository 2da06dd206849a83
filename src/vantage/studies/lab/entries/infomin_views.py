"""InfoMin's figures of views (Tian et al., arXiv 2005.10243), points without numbers: what it claims of them."""

# fmt: off

from vantage.studies.lab.entry import Claim, Entry

__all__ = ["ENTRIES"]

_SWEEP = "a sweep from scratch, not run yet (vantage analyse views)"
_FLOWS = "views learned by flows, not run yet (vantage views learn)"

FIGURE_3 = Entry(
    "infomin-figure-3",
    "InfoMin",
    "Figure 3",
    "distance of two patches",
    claims=(
        Claim("1", "I_NCE falls with the distance", "§3.3", (), why=_SWEEP),
        Claim("2", "accuracy peaks inside", "§3.3", (), why=_SWEEP),
        Claim("3", "it peaks at 128 px, two patches", "§3.3", (), why=_SWEEP),
    ),
    commands=("vantage analyse views distance --data DIV2K --out distance",),
)

FIGURE_4 = Entry(
    "infomin-figure-4",
    "InfoMin",
    "Figure 4",
    "color spaces: what the views share against accuracy",
    claims=(
        Claim("1", "accuracy rises as I_NCE falls", "§3.3", (), why=_SWEEP),
        Claim("2", "so does the mean IoU", "§3.3", (), why=_SWEEP),
        Claim("3", "Lab and YDbDr are alike", "§4.2.1", (), why=_SWEEP),
        Claim("4", "the gain over a random encoder rises as I_NCE falls", "ours", (), why=_SWEEP),
    ),
    commands=("vantage analyse views color --data STL10#unlabeled --out color",),
)

FIGURE_5 = Entry(
    "infomin-figure-5",
    "InfoMin",
    "Figure 5",
    "crop bound and jitter: extract of figures 13 and 14",
    claims=(
        Claim("1", "the best crop bound is .2", "§3.4", (), why="see infomin-figure-13"),
        Claim("2", "the best jitter is 1", "§3.4", (), why="see infomin-figure-14"),
    ),
)

FIGURE_7 = Entry(
    "infomin-figure-7",
    "InfoMin",
    "Figure 7",
    "I_NCE against accuracy of learned views",
    claims=(
        Claim("1", "unsupervised: a reverse U with its top inside", "§4.2", (), why=_FLOWS),
        Claim("2", "semi-supervised spreads less", "§4.2", (), why=_FLOWS),
        Claim("3", "semi-supervised is nearer to the top", "§4.2", (), why=_FLOWS),
        Claim("4", "most unsupervised runs share too little", "§4.2", (), why=_FLOWS),
    ),
)

FIGURE_8 = Entry(
    "infomin-figure-8",
    "InfoMin",
    "Figure 8",
    "learned views against raw ones, larger backbones",
    claims=(
        Claim("1", "learned views are above raw ones, each backbone and space", "§4.2.2", (), why=_FLOWS),
        Claim("2", "the gain is larger in RGB than in YDbDr", "§4.2.2", (), why=_FLOWS),
        Claim("3", "learned RGB rises with capacity", "§4.2.2", (), why=_FLOWS),
    ),
)

FIGURE_9 = Entry(
    "infomin-figure-9",
    "InfoMin",
    "Figure 9",
    "low and high frequencies, by the width of the blur",
    claims=(
        Claim("1", "I_NCE peaks inside, at .7", "B.3", (), why=_SWEEP),
        Claim("2", "above .7 accuracy peaks inside, at 1", "B.3", (), why=_SWEEP),
        Claim("3", "below .7 accuracy rises with the width", "B.3", (), why=_SWEEP),
        Claim("4", "accuracy peaks at a larger width than I_NCE", "B.3", (), why=_SWEEP),
        Claim("5", "at equal I_NCE the larger width is more accurate", "B.3", (), why=_SWEEP),
    ),
)

FIGURE_12 = Entry(
    "infomin-figure-12",
    "InfoMin",
    "Figure 12",
    "a ladder of augmentations",
    claims=(
        Claim("1", "accuracy rises as I_NCE falls", "C.1", (), why=_SWEEP),
        Claim("2", "the strongest is best", "C.1", (), why=_SWEEP),
        Claim("3", "each step lowers I_NCE", "C.1", (), why=_SWEEP),
    ),
)

FIGURE_13 = Entry(
    "infomin-figure-13",
    "InfoMin",
    "Figure 13",
    "crop bound c, linear and MLP head",
    claims=(
        Claim("1", "I_NCE rises with c", "C.2", (), why=_SWEEP),
        Claim("2", "the best c is .2, each head", "C.2", (), why=_SWEEP),
        Claim("3", "MLP: .08 costs more than a point", "C.2", (), why=_SWEEP),
        Claim("4", "the peak is sharper with an MLP", "C.2", (), why=_SWEEP),
    ),
)

FIGURE_14 = Entry(
    "infomin-figure-14",
    "InfoMin",
    "Figure 14",
    "strength of jitter x, linear and MLP head",
    claims=(
        Claim("1", "the best x is 1, each head", "C.2", (), why=_SWEEP),
        Claim("2", "the peak is sharper with an MLP", "C.2", (), why=_SWEEP),
        Claim("3", "I_NCE falls with x", "§3.4", (), why=_SWEEP),
    ),
)

ENTRIES = (FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_7, FIGURE_8, FIGURE_9, FIGURE_12, FIGURE_13, FIGURE_14)
"""InfoMin's figures of views, in the paper's order."""
