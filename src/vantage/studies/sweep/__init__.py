"""Sweeps of views, trained and judged: I_NCE on held-out images against downstream accuracy (InfoMin's reverse U)."""

from vantage.studies.sweep.field import Field, Fields, field_of
from vantage.studies.sweep.figure import sweep_figure, write_sweep
from vantage.studies.sweep.named import SPACES, ColorSpaces, Ladder, Operations
from vantage.studies.sweep.result import SweepResult
from vantage.studies.sweep.rows import SweepRow
from vantage.studies.sweep.study import Study, study
from vantage.studies.sweep.sweeps import (
    BlurWidth,
    CropBound,
    JitterStrength,
    PatchDistance,
    Point,
    Sweep,
    changed,
    points_of,
)

__all__ = [
    "SPACES",
    "BlurWidth",
    "ColorSpaces",
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
    "SweepResult",
    "Fields",
    "changed",
    "field_of",
    "points_of",
    "study",
    "sweep_figure",
    "write_sweep",
]
