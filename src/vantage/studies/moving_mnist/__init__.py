"""Colorful Moving MNIST (InfoMin, arXiv 2005.10243, section 4.1): what two views share decides what is learned."""

from vantage.studies.moving_mnist.clips import Clips, Pairs, Scene, composed, normalized
from vantage.studies.moving_mnist.contrast import ClipContrast
from vantage.studies.moving_mnist.course import ClipTraining
from vantage.studies.moving_mnist.factors import Factors, SameClass, SameDigit, SameImage
from vantage.studies.moving_mnist.judging import LinearHeads, Supervised, seen_frames
from vantage.studies.moving_mnist.motion import places, reflected
from vantage.studies.moving_mnist.networks import ClipEncoder, ClipNetwork, FrameEncoder, FrameNetwork
from vantage.studies.moving_mnist.rows import Bench, Contrasted, EndToEnd, Row, Untrained, chance
from vantage.studies.moving_mnist.shared import COMBINATIONS, SharedFactors
from vantage.studies.moving_mnist.show import picture
from vantage.studies.moving_mnist.stock import Stock, backgrounds_of, digits_of
from vantage.studies.moving_mnist.tasks import TASKS, BackgroundClass, DigitClass, FrameTask, Location

__all__ = [
    "COMBINATIONS",
    "TASKS",
    "BackgroundClass",
    "Bench",
    "ClipEncoder",
    "ClipNetwork",
    "Clips",
    "ClipContrast",
    "Contrasted",
    "ClipTraining",
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
    "SharedFactors",
    "Stock",
    "Supervised",
    "FrameTask",
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
