"""Protocols: detection, instance segmentation and keypoints, as the papers report them on COCO and PASCAL VOC.

Since version 2, landscape and portrait images are trained on in separate steps.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from vantage.errors import UserError
from vantage.evaluate.protocols.detection.cascade import Cascade
from vantage.evaluate.protocols.detection.detector_protocol import DetectorProtocol
from vantage.evaluate.protocols.detection.networks import FourthStage, Pyramid
from vantage.evaluate.protocols.detection.outputs import Boxes, Keypoints, Masks, Output
from vantage.evaluate.protocols.detection.scoring import check_points
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource
from vantage.evaluate.protocols.detection.sources.selections import OfClasses, with_keypoints

__all__ = [
    "DETECTORS",
    "CascadeInstances",
    "Detection",
    "DetectionC4",
    "InstancesC4",
    "InstanceSegmentation",
    "KeypointDetection",
]


@dataclass(frozen=True)
class Detection(DetectorProtocol):
    """Object detection: Faster R-CNN on a feature pyramid (torchvision's), AP of boxes by pycocotools.

    As JCL trains it on COCO, after MoCo: all layers learn, BatchNorm on the pyramid too, shorter side 800 in testing.
    Frozen as in Ring (whose boxes are those of `instances`): --set frozen_stages=5 --set new_norm=False. The
    BatchNorm is the papers' synchronized one: over all images of a step, on one process or several.
    """

    name: ClassVar[str] = "detection"
    version: ClassVar[int] = 2
    output: ClassVar[Output] = Boxes()

    network_on: Pyramid = field(default_factory=Pyramid)
    """How the backbone is used."""


@dataclass(frozen=True)
class DetectionC4(DetectorProtocol):
    """Object detection: Faster R-CNN on the fourth stage, the fifth as head (C4), with one more BatchNorm after it.

    As MoCo, InfoMin and InterCLR train it on PASCAL VOC: --schedule voc --data VOC2007#trainval,VOC2012#trainval
    --test VOC2007#test; means of five runs (--seed). Frozen as in Ring: --set frozen_stages=5 --set new_norm=False.
    VOC's own AP (11 recalls) stands beside COCO's.
    """

    name: ClassVar[str] = "detection-c4"
    version: ClassVar[int] = 2
    output: ClassVar[Output] = Boxes()

    network_on: FourthStage = field(default_factory=FourthStage)
    """How the backbone is used."""


@dataclass(frozen=True)
class InstanceSegmentation(DetectorProtocol):
    """Instance segmentation: Mask R-CNN on a feature pyramid (torchvision's), AP of masks and of boxes.

    As JCL (1x), MoCo (1x, 2x) and InfoMin (1x, 2x, 6x; --set normed_heads=True as released) train it on COCO, and
    Ring on a frozen ResNet-18 (1x); see `detection`.
    """

    name: ClassVar[str] = "instances"
    version: ClassVar[int] = 2
    output: ClassVar[Output] = Masks()

    network_on: Pyramid = field(default_factory=Pyramid)
    """How the backbone is used."""


@dataclass(frozen=True)
class InstancesC4(DetectorProtocol):
    """Instance segmentation: Mask R-CNN on the fourth stage, the fifth as head (C4), AP of masks and of boxes.

    As InfoMin and MoCo train it on COCO (1x, 2x), shorter side 640 to 800; see `detection`. In training the mask head
    runs the fifth stage on its own regions, where Detectron2 reuses those of the boxes.
    """

    name: ClassVar[str] = "instances-c4"
    version: ClassVar[int] = 2
    output: ClassVar[Output] = Masks()

    network_on: FourthStage = field(default_factory=FourthStage)
    """How the backbone is used."""


@dataclass(frozen=True)
class CascadeInstances(DetectorProtocol):
    """Instance segmentation: Cascade Mask R-CNN on a feature pyramid (torchvision's parts), AP of masks and of boxes.

    As InfoMin trains it on COCO with a ResNet-101 (1x, 2x, 6x; --set normed_heads=True as released); see `detection`.
    """

    name: ClassVar[str] = "instances-cascade"
    version: ClassVar[int] = 1
    output: ClassVar[Output] = Masks()

    network_on: Cascade = field(default_factory=Cascade)
    """How the backbone is used."""


@dataclass(frozen=True)
class KeypointDetection(DetectorProtocol):
    """Keypoints: Keypoint R-CNN on a feature pyramid (torchvision's), AP of keypoints (by OKS) and of boxes.

    As JCL trains it on COCO's persons (1x), and Ring on a frozen ResNet-18 (1x); see `detection`. Images without a
    labeled keypoint are left out of training.
    """

    name: ClassVar[str] = "keypoints"
    version: ClassVar[int] = 2

    network_on: Pyramid = field(default_factory=Pyramid)
    """How the backbone is used."""

    def prepare(self, train: AnnotatedSource, test: AnnotatedSource) -> tuple[Output, AnnotatedSource, AnnotatedSource]:
        """Keypoints, and the images of both sides with the class that has them. Raises `UserError` for several such
        classes, or none, for test images of other classes, and for keypoints other than COCO's 17."""
        train, test = with_keypoints(train), with_keypoints(test)
        if len(train.classes) != 1:
            raise UserError(
                f"keypoints are learned for one class, but {len(train.classes)} classes of the training images have any"
                f" ({', '.join(train.classes) or 'none'}): name a file such as person_keypoints_train2017.json"
            )
        if test.classes != train.classes:
            test = OfClasses(test, train.classes)
        check_points(train)  # before hours of training: other keypoints cannot be scored
        check_points(test)
        return Keypoints(len(train.keypoints[train.classes[0]])), train, test


DETECTORS: tuple[type[DetectorProtocol], ...] = (
    Detection,
    DetectionC4,
    InstanceSegmentation,
    InstancesC4,
    CascadeInstances,
    KeypointDetection,
)
"""Every protocol whose images are annotated; each has a `name`."""
