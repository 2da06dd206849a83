"""Detectors on a trained backbone: annotated images, networks, average precision, and protocols."""

from vantage.composition.public import make_public
from vantage.evaluate.protocols.detection.cascade import Cascade as Cascade
from vantage.evaluate.protocols.detection.detector import Detector as Detector
from vantage.evaluate.protocols.detection.detector_protocol import DetectorProtocol as DetectorProtocol
from vantage.evaluate.protocols.detection.examples import Example as Example
from vantage.evaluate.protocols.detection.examples import example as example
from vantage.evaluate.protocols.detection.examples import mirror_example as mirror_example
from vantage.evaluate.protocols.detection.examples import mirror_order as mirror_order
from vantage.evaluate.protocols.detection.networks import FourthStage as FourthStage
from vantage.evaluate.protocols.detection.networks import Pyramid as Pyramid
from vantage.evaluate.protocols.detection.outputs import Boxes as Boxes
from vantage.evaluate.protocols.detection.outputs import Keypoints as Keypoints
from vantage.evaluate.protocols.detection.outputs import Masks as Masks
from vantage.evaluate.protocols.detection.protocols import DETECTORS as DETECTORS
from vantage.evaluate.protocols.detection.protocols import CascadeInstances as CascadeInstances
from vantage.evaluate.protocols.detection.protocols import Detection as Detection
from vantage.evaluate.protocols.detection.protocols import DetectionC4 as DetectionC4
from vantage.evaluate.protocols.detection.protocols import InstancesC4 as InstancesC4
from vantage.evaluate.protocols.detection.protocols import InstanceSegmentation as InstanceSegmentation
from vantage.evaluate.protocols.detection.protocols import KeypointDetection as KeypointDetection
from vantage.evaluate.protocols.detection.schedules import SCHEDULES as SCHEDULES
from vantage.evaluate.protocols.detection.schedules import DetectionSchedule as DetectionSchedule
from vantage.evaluate.protocols.detection.scoring import Detections as Detections
from vantage.evaluate.protocols.detection.scoring import Precision as Precision
from vantage.evaluate.protocols.detection.scoring import precision_of as precision_of
from vantage.evaluate.protocols.detection.sizes import COCO_SIZES as COCO_SIZES
from vantage.evaluate.protocols.detection.sizes import VOC_SIZES as VOC_SIZES
from vantage.evaluate.protocols.detection.sizes import Sizes as Sizes
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource as AnnotatedSource
from vantage.evaluate.protocols.detection.sources.annotated import Instances as Instances
from vantage.evaluate.protocols.detection.sources.annotated import RunLengths as RunLengths
from vantage.evaluate.protocols.detection.sources.coco import CocoImages as CocoImages
from vantage.evaluate.protocols.detection.sources.masks import mask_of as mask_of
from vantage.evaluate.protocols.detection.sources.masks import run_lengths as run_lengths
from vantage.evaluate.protocols.detection.sources.opening import open_annotated as open_annotated
from vantage.evaluate.protocols.detection.sources.opening import split_annotated as split_annotated
from vantage.evaluate.protocols.detection.sources.selections import JoinedImages as JoinedImages
from vantage.evaluate.protocols.detection.sources.selections import OfClasses as OfClasses
from vantage.evaluate.protocols.detection.sources.selections import SelectedImages as SelectedImages
from vantage.evaluate.protocols.detection.sources.voc import VOC_CLASSES as VOC_CLASSES
from vantage.evaluate.protocols.detection.sources.voc import VocImages as VocImages
from vantage.evaluate.protocols.detection.training import DetectorTraining as DetectorTraining
from vantage.evaluate.protocols.detection.training import detect as detect
from vantage.evaluate.protocols.detection.voc_scoring import voc_precision_of as voc_precision_of

__all__ = ["DETECTORS", "SCHEDULES", "VOC_CLASSES", *make_public(globals())]  # pyright: ignore
