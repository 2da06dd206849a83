"""Colorful Moving MNIST (InfoMin, arXiv 2005.10243, section 4.1): what two views share decides what is learned."""

from vantage.moving.clips import Clips, Pairs, Scene, composed, normalised
from vantage.moving.contrast import Contrast
from vantage.moving.course import Course
from vantage.moving.factors import Factors, SameClass, SameDigit, SameImage
from vantage.moving.judging import LinearHeads, Supervised, seen_frames
from vantage.moving.motion import places, reflected
from vantage.moving.networks import ClipEncoder, ClipNetwork, FrameEncoder, FrameNetwork
from vantage.moving.rows import Bench, Contrasted, EndToEnd, Row, Untrained, chance
from vantage.moving.shared import COMBINATIONS, Shared
from vantage.moving.show import picture
from vantage.moving.stock import Stock, backgrounds_of, digits_of
from vantage.moving.tasks import TASKS, BackgroundClass, DigitClass, Location, Task

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
    "normalised",
    "picture",
    "places",
    "reflected",
    "seen_frames",
]
