"""Colorful Moving MNIST (InfoMin, arXiv 2005.10243, section 4.1): what two views share decides what is learned."""

from vantage.studies.moving_mnist.clips import Clips as Clips
from vantage.studies.moving_mnist.clips import Pairs as Pairs
from vantage.studies.moving_mnist.clips import Scene as Scene
from vantage.studies.moving_mnist.clips import composed as composed
from vantage.studies.moving_mnist.clips import normalized as normalized
from vantage.studies.moving_mnist.contrast import ClipContrast as ClipContrast
from vantage.studies.moving_mnist.course import ClipTraining as ClipTraining
from vantage.studies.moving_mnist.factors import Factors as Factors
from vantage.studies.moving_mnist.factors import SameClass as SameClass
from vantage.studies.moving_mnist.factors import SameDigit as SameDigit
from vantage.studies.moving_mnist.factors import SameImage as SameImage
from vantage.studies.moving_mnist.judging import LinearHeads as LinearHeads
from vantage.studies.moving_mnist.judging import Supervised as Supervised
from vantage.studies.moving_mnist.judging import seen_frames as seen_frames
from vantage.studies.moving_mnist.motion import places as places
from vantage.studies.moving_mnist.motion import reflected as reflected
from vantage.studies.moving_mnist.networks import ClipEncoder as ClipEncoder
from vantage.studies.moving_mnist.networks import ClipNetwork as ClipNetwork
from vantage.studies.moving_mnist.networks import FrameEncoder as FrameEncoder
from vantage.studies.moving_mnist.networks import FrameNetwork as FrameNetwork
from vantage.studies.moving_mnist.rows import Bench as Bench
from vantage.studies.moving_mnist.rows import Contrasted as Contrasted
from vantage.studies.moving_mnist.rows import EndToEnd as EndToEnd
from vantage.studies.moving_mnist.rows import Row as Row
from vantage.studies.moving_mnist.rows import Untrained as Untrained
from vantage.studies.moving_mnist.rows import chance as chance
from vantage.studies.moving_mnist.shared import COMBINATIONS as COMBINATIONS
from vantage.studies.moving_mnist.shared import SharedFactors as SharedFactors
from vantage.studies.moving_mnist.show import picture as picture
from vantage.studies.moving_mnist.stock import Stock as Stock
from vantage.studies.moving_mnist.stock import backgrounds_of as backgrounds_of
from vantage.studies.moving_mnist.stock import digits_of as digits_of
from vantage.studies.moving_mnist.tasks import TASKS as TASKS
from vantage.studies.moving_mnist.tasks import BackgroundClass as BackgroundClass
from vantage.studies.moving_mnist.tasks import DigitClass as DigitClass
from vantage.studies.moving_mnist.tasks import FrameTask as FrameTask
from vantage.studies.moving_mnist.tasks import Location as Location

__all__ = ["COMBINATIONS", "TASKS"]
__all__ += [name for name, part in globals().items() if getattr(part, "__module__", "").startswith(f"{__name__}.")]  # pyright: ignore
