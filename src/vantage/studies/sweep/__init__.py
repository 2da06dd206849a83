"""Sweeps over views, trained and evaluated: I_NCE on held-out images against accuracy (InfoMin's reverse U)."""

from vantage.composition.public import make_public
from vantage.studies.sweep.categorical import SPACES as SPACES
from vantage.studies.sweep.categorical import ColorSpaces as ColorSpaces
from vantage.studies.sweep.categorical import Ladder as Ladder
from vantage.studies.sweep.categorical import Operations as Operations
from vantage.studies.sweep.field import Field as Field
from vantage.studies.sweep.field import Fields as Fields
from vantage.studies.sweep.field import parse_fields as parse_fields
from vantage.studies.sweep.figure import sweep_figure as sweep_figure
from vantage.studies.sweep.figure import write_sweep as write_sweep
from vantage.studies.sweep.result import SweepResult as SweepResult
from vantage.studies.sweep.rows import SweepRow as SweepRow
from vantage.studies.sweep.study import Study as Study
from vantage.studies.sweep.study import run_study as run_study
from vantage.studies.sweep.sweeps import BlurWidth as BlurWidth
from vantage.studies.sweep.sweeps import CropBound as CropBound
from vantage.studies.sweep.sweeps import JitterStrength as JitterStrength
from vantage.studies.sweep.sweeps import PatchDistance as PatchDistance
from vantage.studies.sweep.sweeps import Sweep as Sweep
from vantage.studies.sweep.sweeps import SweepPoint as SweepPoint
from vantage.studies.sweep.sweeps import change_views as change_views
from vantage.studies.sweep.sweeps import points_of as points_of

__all__ = ["SPACES", *make_public(globals())]  # pyright: ignore
