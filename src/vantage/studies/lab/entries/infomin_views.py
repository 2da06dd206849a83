"""InfoMin's figures of views (Tian et al., arXiv 2005.10243), points without numbers: what it claims about them. Those
in which one thing is varied are in `infomin_sweeps`."""

# fmt: off

from vantage.studies.lab.entries import infomin_sweeps
from vantage.studies.lab.entry import Claim, Entry

__all__ = ["ENTRIES"]

_FLOWS = "a view learned by a flow costs more than the runs that judge it (vantage views learn)"

FIGURE_7 = Entry(
    "infomin-figure-7",
    "InfoMin",
    "Figure 7",
    "I_NCE against accuracy of learned views",
    claims=(
        Claim("1", "unsupervised: a reverse U with its top inside", "§4.2", (), note=_FLOWS),
        Claim("2", "semi-supervised spreads less", "§4.2", (), note=_FLOWS),
        Claim("3", "semi-supervised is nearer to the top", "§4.2", (), note=_FLOWS),
        Claim("4", "most unsupervised runs share too little", "§4.2", (), note=_FLOWS),
    ),
)

FIGURE_8 = Entry(
    "infomin-figure-8",
    "InfoMin",
    "Figure 8",
    "learned views against raw ones, larger backbones",
    claims=(
        Claim("1", "learned views are above raw ones, each backbone and space", "§4.2.2", (), note=_FLOWS),
        Claim("2", "the gain is larger in RGB than in YDbDr", "§4.2.2", (), note=_FLOWS),
        Claim("3", "learned RGB rises with capacity", "§4.2.2", (), note=_FLOWS),
    ),
)

_SWEEPS = infomin_sweeps.ENTRIES
ENTRIES = (*_SWEEPS[:3], FIGURE_7, FIGURE_8, *_SWEEPS[3:])
"""InfoMin's figures of views, in the paper's order."""
