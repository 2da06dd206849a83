"""Colorful Moving MNIST (InfoMin, arXiv 2005.10243, section 4.1): what two views share decides what is learned."""

from vantage.studies.moving_mnist.clips import Clips, Pairs, Scene, composed, normalized
from vantage.studies.moving_mnist.contrast import Contrast
from vantage.studies.moving_mnist.course import Course
from vantage.studies.moving_mnist.factors import Factors, SameClass, SameDigit, SameImage
from vantage.studies.moving_mnist.judging import LinearHeads, Supervised, seen_frames
from vantage.studies.moving_mnist.motion import places, reflected
from vantage.studies.moving_mnist.networks import ClipEncoder, ClipNetwork, FrameEncoder, FrameNetwork
from vantage.studies.moving_mnist.rows import Bench, Contrasted, EndToEnd, Row, Untrained, chance
from vantage.studies.moving_mnist.shared import COMBINATIONS, Shared
from vantage.studies.moving_mnist.show import picture
from vantage.studies.moving_mnist.stock import Stock, backgrounds_of, digits_of
from vantage.studies.moving_mnist.tasks import TASKS, BackgroundClass, DigitClass, Location, Task

__all__ = [
    "COMBINATIONS",
    "TASKS",
    "BackgroundClass",
    "Bench",
    "ClipEncoder",
    "ClipNetwork",
    "Clips",
    "Contrast",
    "Contrasted",
    "Course",
    "DigitClass",
    "EndToEnd",
    "Factors",
    "FrameEncoder",
    "FrameNetwork",
    "LinearHeads",
    "Location",
    "Pairs",
    "Row",
    "SameClass",
    "SameDigit",
    "SameImage",
    "Scene",
    "Shared",
    "Stock",
    "Supervised",
    "Task",
    "Untrained",
    "backgrounds_of",
    "chance",
    "composed",
    "digits_of",
    "normalized",
    "picture",
    "places",
    "reflected",
    "seen_frames",
]
