"""Colorful Moving MNIST (InfoMin, arXiv 2005.10243, section 4.1): what two views share decides what is learned."""

from vantage.composition.public import make_public
from vantage.studies.moving_mnist.clips import Clips as Clips
from vantage.studies.moving_mnist.clips import Pairs as Pairs
from vantage.studies.moving_mnist.clips import Scene as Scene
from vantage.studies.moving_mnist.clips import compose_frames as compose_frames
from vantage.studies.moving_mnist.clips import normalize_pixels as normalize_pixels
from vantage.studies.moving_mnist.contrast import ClipContrast as ClipContrast
from vantage.studies.moving_mnist.evaluation import LinearHeads as LinearHeads
from vantage.studies.moving_mnist.evaluation import SupervisedTraining as SupervisedTraining
from vantage.studies.moving_mnist.evaluation import frame_features as frame_features
from vantage.studies.moving_mnist.factors import Factors as Factors
from vantage.studies.moving_mnist.factors import SameClass as SameClass
from vantage.studies.moving_mnist.factors import SameDigit as SameDigit
from vantage.studies.moving_mnist.factors import SameImage as SameImage
from vantage.studies.moving_mnist.image_set import ImageSet as ImageSet
from vantage.studies.moving_mnist.image_set import load_backgrounds as load_backgrounds
from vantage.studies.moving_mnist.image_set import load_digits as load_digits
from vantage.studies.moving_mnist.motion import digit_positions as digit_positions
from vantage.studies.moving_mnist.motion import reflect as reflect
from vantage.studies.moving_mnist.networks import ClipEncoder as ClipEncoder
from vantage.studies.moving_mnist.networks import ClipNetwork as ClipNetwork
from vantage.studies.moving_mnist.networks import FrameEncoder as FrameEncoder
from vantage.studies.moving_mnist.networks import FrameNetwork as FrameNetwork
from vantage.studies.moving_mnist.rows import Bench as Bench
from vantage.studies.moving_mnist.rows import ContrastiveRow as ContrastiveRow
from vantage.studies.moving_mnist.rows import RowMeasures as RowMeasures
from vantage.studies.moving_mnist.rows import SupervisedRow as SupervisedRow
from vantage.studies.moving_mnist.rows import TableRow as TableRow
from vantage.studies.moving_mnist.rows import UntrainedRow as UntrainedRow
from vantage.studies.moving_mnist.rows import chance as chance
from vantage.studies.moving_mnist.shared_factors import COMBINATIONS as COMBINATIONS
from vantage.studies.moving_mnist.shared_factors import SharedFactors as SharedFactors
from vantage.studies.moving_mnist.show import picture as picture
from vantage.studies.moving_mnist.table_4 import InfoMinTable4 as InfoMinTable4
from vantage.studies.moving_mnist.table_4 import reproduce as reproduce
from vantage.studies.moving_mnist.table_4_report import PUBLISHED as PUBLISHED
from vantage.studies.moving_mnist.table_4_report import Report as Report
from vantage.studies.moving_mnist.tasks import TASKS as TASKS
from vantage.studies.moving_mnist.tasks import BackgroundClass as BackgroundClass
from vantage.studies.moving_mnist.tasks import DigitClass as DigitClass
from vantage.studies.moving_mnist.tasks import FrameTask as FrameTask
from vantage.studies.moving_mnist.tasks import Location as Location
from vantage.studies.moving_mnist.training import ClipTraining as ClipTraining

__all__ = ["COMBINATIONS", "PUBLISHED", "TASKS", *make_public(globals())]  # pyright: ignore
