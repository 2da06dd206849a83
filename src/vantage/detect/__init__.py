"""Detectors on top of a trained backbone: annotated images, networks, average precision, and protocols to judge by."""

from vantage.detect.annotated import Annotated, Instances, RunLengths
from vantage.detect.coco import CocoImages
from vantage.detect.course import Course, find
from vantage.detect.detector import Detector
from vantage.detect.evaluation import DETECTORS, DetectorTask, detector_task, evaluate_detector
from vantage.detect.examples import Example, example, mirror_order, mirrored
from vantage.detect.masks import mask_of, run_lengths
from vantage.detect.networks import FourthStage, Pyramid
from vantage.detect.opening import open_annotated, split_annotated
from vantage.detect.outputs import Boxes, Keypoints, Masks
from vantage.detect.protocols import Detection, DetectionC4, InstancesC4, InstanceSegmentation, KeypointDetection
from vantage.detect.schedules import SCHEDULES, Schedule
from vantage.detect.scoring import Found, Precision, precision_of
from vantage.detect.selections import Chosen, Joined, OfClasses
from vantage.detect.sizes import COCO_SIZES, VOC_SIZES, Sizes
from vantage.detect.voc import VOC_CLASSES, VocImages
from vantage.detect.voc_scoring import voc_precision_of

__all__ = [
    "COCO_SIZES",
    "DETECTORS",
    "SCHEDULES",
    "VOC_CLASSES",
    "VOC_SIZES",
    "Annotated",
    "Boxes",
    "Chosen",
    "CocoImages",
    "Course",
    "Detection",
    "DetectionC4",
    "Detector",
    "DetectorTask",
    "Example",
    "Found",
    "FourthStage",
    "InstanceSegmentation",
    "Instances",
    "InstancesC4",
    "Joined",
    "KeypointDetection",
    "Keypoints",
    "Masks",
    "OfClasses",
    "Precision",
    "Pyramid",
    "RunLengths",
    "Schedule",
    "Sizes",
    "VocImages",
    "detector_task",
    "evaluate_detector",
    "example",
    "find",
    "mask_of",
    "mirror_order",
    "mirrored",
    "open_annotated",
    "precision_of",
    "run_lengths",
    "split_annotated",
    "voc_precision_of",
]
