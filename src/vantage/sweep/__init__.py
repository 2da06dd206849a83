"""Views varied, trained, and judged: I_NCE on held-out images against downstream accuracy (InfoMin's reverse U)."""

from vantage.sweep.field import Field, field_of
from vantage.sweep.named import SPACES, ColourSpaces, Ladder, Operations
from vantage.sweep.sweeps import BlurWidth, CropBound, JitterStrength, PatchDistance, Point, Sweep, changed, points_of

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
    "Sweep",
    "changed",
    "field_of",
    "points_of",
]
