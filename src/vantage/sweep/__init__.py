"""Views varied, trained, and judged: I_NCE on held-out images against downstream accuracy (InfoMin's reverse U)."""

from vantage.sweep.field import Field, field_of
from vantage.sweep.named import SPACES, ColourSpaces, Ladder, Operations
from vantage.sweep.rows import SweepRow
from vantage.sweep.study import Study, study
from vantage.sweep.sweeps import BlurWidth, CropBound, JitterStrength, PatchDistance, Point, Sweep, changed, points_of
from vantage.sweep.swept import Swept

__all__ = [
    "SPACES",
    "BlurWidth",
    "ColourSpaces",
    "CropBound",
    "Field",
    "JitterStrength",
    "Ladder",
    "Operations",
    "PatchDistance",
    "Point",
    "Study",
    "Sweep",
    "SweepRow",
    "Swept",
    "changed",
    "field_of",
    "points_of",
    "study",
]
