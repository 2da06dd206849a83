"""Detectors on top of a trained backbone: annotated images, networks, average precision, and protocols to judge by."""

from vantage.detect.annotated import Annotated, Instances, RunLengths
from vantage.detect.coco import CocoImages
from vantage.detect.masks import mask_of, run_lengths
from vantage.detect.opening import open_annotated, split_annotated
from vantage.detect.selections import Chosen, Joined, OfClasses
from vantage.detect.voc import VOC_CLASSES, VocImages

__all__ = [
    "VOC_CLASSES",
    "Annotated",
    "Chosen",
    "CocoImages",
    "Instances",
    "Joined",
    "OfClasses",
    "RunLengths",
    "VocImages",
    "mask_of",
    "open_annotated",
    "run_lengths",
    "split_annotated",
]
