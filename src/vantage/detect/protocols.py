"""Protocols: detection, instance segmentation and keypoints, as the papers report them on COCO and PASCAL VOC."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch

from vantage import draws
from vantage.data.source import Source, cache_key, hash_of
from vantage.detect.annotated import Annotated
from vantage.detect.course import Course, find, seeded
from vantage.detect.examples import worth_training
from vantage.detect.masks import coco_tools
from vantage.detect.networks import Boxes, FourthStage, Keypoints, Masks, Output, Pyramid
from vantage.detect.schedules import SCHEDULES, Schedule, ScheduleName
from vantage.detect.scoring import Precision, precision_of
from vantage.detect.selections import OfClasses, with_keypoints
from vantage.detect.sizes import Sizes
from vantage.embedding import Work
from vantage.errors import UserError
from vantage.evaluate.outcome import Outcome
from vantage.trained import Trained

__all__ = ["Detection", "DetectionC4", "InstancesC4", "InstanceSegmentation", "KeypointDetection"]

_INITIAL = 0xDE74  # what a seed is for


@dataclass(frozen=True)
class _Training:
    """The settings that all detectors have."""

    schedule: ScheduleName = "1x"
    """Steps and falls of the rate: 1x (90,000 steps of 16 images), 2x, 6x (COCO), or voc (24,000)."""
    steps: int = 0
    """Steps in the place of the schedule's, for small sets; falls stay at the same shares. 0: the schedule's."""
    batch: int = 16
    """Images of a step. Another number than 16 changes the schedule's steps, and the rate, in proportion; steps that
    are given are not changed."""
    rate: float = 0.02
    """Learning rate for 16 images."""
    keep_empty: bool = False
    """Whether training images without boxes are kept, where all regions are background; the papers leave them out.
    Test images without boxes always count."""
    precise_batches: int = 200
    """Training batches (at most as many as steps) over which BatchNorms average their statistics before testing."""
    sizes: Sizes = field(default_factory=Sizes)
    """Sides of images and anchors."""
    seed: int = 0
    """Of new weights, order, mirrored images, sides and sampled regions."""

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise UserError(f"detection: there is no schedule {self.schedule!r} (schedules: {', '.join(SCHEDULES)})")
        if self.steps < 0 or self.precise_batches < 0:
            raise UserError(
                f"detection: steps is {self.steps} and precise_batches {self.precise_batches}; give 0 or more"
            )
        self.course()

    def course(self) -> Schedule:
        """The schedule for this batch, rate and number of steps."""
        named = SCHEDULES[self.schedule]
        scaled = Schedule(named.steps, named.falls, named.warm_up, named.batch, self.rate).for_batch(self.batch)
        return scaled.in_steps(self.steps) if self.steps else scaled


@dataclass(frozen=True)
class Detection(_Training):
    """Object detection: Faster R-CNN on a feature pyramid (torchvision's), AP of boxes by pycocotools.

    As JCL and MoCo train it on COCO: all layers learn, BatchNorm on the pyramid too, shorter side 640 to 800 in
    training and 800 in testing, 16 images a step, rate .02; frozen as Ring has it: --network-on.frozen-stages 5
    --network-on.no-new-norm. BatchNorm takes its statistics over the images of a step, which are all on one device:
    the papers' synchronised BatchNorm of 16 images is that of --batch 16 here.

    Data: a COCO file, or a folder of PASCAL VOC with its split (`vantage.detect.open_annotated`).
    """

    name: ClassVar[str] = "detection"
    version: ClassVar[int] = 1

    network_on: Pyramid = field(default_factory=Pyramid)
    """How the backbone is used."""

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`; both are `Annotated`."""
        return _judged(self, self.network_on, Boxes(), trained, train, test, work)


@dataclass(frozen=True)
class DetectionC4(_Training):
    """Object detection: Faster R-CNN on the fourth stage, the fifth as head (C4), with one more BatchNorm behind it.

    As MoCo, InfoMin and InterCLR train it on PASCAL VOC: --schedule voc --sizes.short-sides 480 512 … 800, trainval of
    2007 and 2012 for training, test of 2007 for testing; all layers learn. They report AP of VOC's own code, which
    averages precision at 11 recalls; here it is COCO's, at 101. For synchronised BatchNorm see `detection`.
    """

    name: ClassVar[str] = "detection-c4"
    version: ClassVar[int] = 1

    network_on: FourthStage = field(default_factory=FourthStage)
    """How the backbone is used."""

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`; both are `Annotated`."""
        return _judged(self, self.network_on, Boxes(), trained, train, test, work)


@dataclass(frozen=True)
class InstanceSegmentation(_Training):
    """Instance segmentation: Mask R-CNN on a feature pyramid (torchvision's), AP of masks and of boxes.

    As JCL and MoCo train it on COCO; see `detection`.
    """

    name: ClassVar[str] = "instances"
    version: ClassVar[int] = 1

    network_on: Pyramid = field(default_factory=Pyramid)
    """How the backbone is used."""

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`; both are `Annotated`."""
        return _judged(self, self.network_on, Masks(), trained, train, test, work)


@dataclass(frozen=True)
class InstancesC4(_Training):
    """Instance segmentation: Mask R-CNN on the fourth stage, the fifth as head (C4), AP of masks and of boxes.

    As InfoMin and MoCo train it on COCO; see `detection-c4`. In training the mask branch sends its regions through the
    fifth stage by themselves, where Detectron2 takes them from those of the boxes.
    """

    name: ClassVar[str] = "instances-c4"
    version: ClassVar[int] = 1

    network_on: FourthStage = field(default_factory=FourthStage)
    """How the backbone is used."""

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`; both are `Annotated`."""
        return _judged(self, self.network_on, Masks(), trained, train, test, work)


@dataclass(frozen=True)
class KeypointDetection(_Training):
    """Keypoints: Keypoint R-CNN on a feature pyramid (torchvision's), AP of keypoints (by OKS) and of boxes.

    As JCL and MoCo train it on COCO's persons; see `detection`. Images without a labelled keypoint are left out of
    training.
    """

    name: ClassVar[str] = "keypoints"
    version: ClassVar[int] = 1

    network_on: Pyramid = field(default_factory=Pyramid)
    """How the backbone is used."""

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`; both are `Annotated`."""
        train, test = with_keypoints(annotated(train)), annotated(test)
        if len(train.classes) != 1:
            raise UserError(
                f"keypoints are learned of one class, and {len(train.classes)} classes of the training images have any"
                f" ({', '.join(train.classes) or 'none'}): name a file such as person_keypoints_train2017.json"
            )
        points = Keypoints(len(train.keypoints[train.classes[0]]))
        return _judged(self, self.network_on, points, trained, train, with_keypoints(test), work)


def annotated(source: Source | Annotated) -> Annotated:
    """The source, if it tells what is where; raises `UserError` for others."""
    if not isinstance(source, Annotated):
        raise UserError(
            "detection needs images with boxes: open them with vantage.detect.open_annotated (a COCO file, or a folder"
            " of PASCAL VOC)"
        )
    return source


def _judged(
    protocol: _Training,
    network: Pyramid | FourthStage,
    output: Output,
    trained: Trained,
    train: Source | Annotated,
    test: Source | Annotated,
    work: Work,
) -> Outcome:
    coco_tools("cocoeval")  # what is not installed is told before hours of training
    train, test = annotated(train), annotated(test)
    if isinstance(output, Masks) and not test.has_masks:
        raise UserError("instance segmentation needs the pixels of every instance, and the test images have boxes only")
    test = test if test.classes == train.classes else OfClasses(test, train.classes)
    taught, schedule = worth_training(train, output, protocol.keep_empty), protocol.course()
    device = work.place()
    with seeded(draws.mix(protocol.seed, _INITIAL), device):
        detector = network.build(trained, len(train.classes), output, protocol.sizes)
    facts = (trained.digest(), cache_key(taught), repr((protocol, output)), device.type, torch.__version__, "1")
    kept = work.cache / "detectors" / f"{hash_of(fact.encode() for fact in facts)}.safetensors"
    course = Course(schedule, protocol.seed, protocol.precise_batches, kept)
    losses = course(detector, taught, output, work, trained.name)
    found = find(detector, test, output, work, trained.name)
    boxes = precision_of(test, found, "bbox")
    measures, details = _told(boxes, output, "box ")
    if isinstance(output, Masks):
        further, more = _told(precision_of(test, found, "segm"), Boxes(), "mask ", always=True)
        measures, details = further | measures, details | more
    if isinstance(output, Keypoints):
        further, more = _told(precision_of(test, found, "keypoints"), Boxes(), "keypoint ", always=True)
        measures, details = further | measures, details | more
    course.forget()
    shown = {label for number in range(len(taught)) for label in taught.instances(number).label.tolist()}
    details |= {
        "steps": schedule.steps,
        "falls": list(schedule.falls),
        "rate": schedule.rate,
        "training images left out": len(train) - len(taught),
        "classes without training boxes": [n for number, n in enumerate(train.classes) if number not in shown],
        "detections": sum(len(one.label) for one in found),
        "losses": _thinned(losses),
    }
    return Outcome(measures, len(taught), len(test), {}, details)


def _told(
    precision: Precision, output: Output, prefix: str, always: bool = False
) -> tuple[dict[str, float], dict[str, object]]:
    """The three numbers that papers report, and all behind them. Of boxes alone they have no prefix."""
    prefix = "" if isinstance(output, Boxes) and not always else prefix
    measures = {f"{prefix}{name}": precision.measures[name] or 0.0 for name in ("AP", "AP50", "AP75")}
    shown = {name: value for name, value in precision.of_class.items() if value is not None}
    return measures, {f"{prefix}measures": precision.measures, f"{prefix}AP of each class shown": shown}


def _thinned(losses: list[float], most: int = 100) -> list[float]:
    """Means of at most so many equal parts of the course."""
    size = -(-len(losses) // most) or 1
    return [sum(losses[at : at + size]) / len(losses[at : at + size]) for at in range(0, len(losses), size)]
