"""Detectors on a trained backbone: annotated images, networks, average precision, and protocols."""

from vantage.evaluate.protocols.detection.cascade import Cascade
from vantage.evaluate.protocols.detection.detector import Detector
from vantage.evaluate.protocols.detection.detector_protocol import DetectorProtocol
from vantage.evaluate.protocols.detection.examples import Example, example, mirror_example, mirror_order
from vantage.evaluate.protocols.detection.networks import FourthStage, Pyramid
from vantage.evaluate.protocols.detection.outputs import Boxes, Keypoints, Masks
from vantage.evaluate.protocols.detection.protocols import (
    DETECTORS,
    CascadeInstances,
    Detection,
    DetectionC4,
    InstancesC4,
    InstanceSegmentation,
    KeypointDetection,
)
from vantage.evaluate.protocols.detection.schedules import SCHEDULES, DetectionSchedule
from vantage.evaluate.protocols.detection.scoring import Detections, Precision, precision_of
from vantage.evaluate.protocols.detection.sizes import COCO_SIZES, VOC_SIZES, Sizes
from vantage.evaluate.protocols.detection.sources.annotated import Annotated, Instances, RunLengths
from vantage.evaluate.protocols.detection.sources.coco import CocoImages
from vantage.evaluate.protocols.detection.sources.masks import mask_of, run_lengths
from vantage.evaluate.protocols.detection.sources.opening import open_annotated, split_annotated
from vantage.evaluate.protocols.detection.sources.selections import JoinedImages, OfClasses, SelectedImages
from vantage.evaluate.protocols.detection.sources.voc import VOC_CLASSES, VocImages
from vantage.evaluate.protocols.detection.training import DetectorTraining, detect
from vantage.evaluate.protocols.detection.voc_scoring import voc_precision_of

__all__ = [
    "COCO_SIZES",
    "DETECTORS",
    "SCHEDULES",
    "VOC_CLASSES",
    "VOC_SIZES",
    "Annotated",
    "Boxes",
    "Cascade",
    "CascadeInstances",
    "SelectedImages",
    "CocoImages",
    "DetectorTraining",
    "Detection",
    "DetectionC4",
    "Detector",
    "Example",
    "Detections",
    "FourthStage",
    "InstanceSegmentation",
    "Instances",
    "InstancesC4",
    "JoinedImages",
    "KeypointDetection",
    "DetectorProtocol",
    "Keypoints",
    "Masks",
    "OfClasses",
    "Precision",
    "Pyramid",
    "RunLengths",
    "DetectionSchedule",
    "Sizes",
    "VocImages",
    "example",
    "detect",
    "mask_of",
    "mirror_order",
    "mirror_example",
    "open_annotated",
    "precision_of",
    "run_lengths",
    "split_annotated",
    "voc_precision_of",
]
