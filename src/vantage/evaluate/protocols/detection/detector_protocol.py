"""How a detector is trained on one set of images and judged on another, whatever it tells and is built on."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from vantage import draws
from vantage.data.sources.source import Source, cache_key
from vantage.data.splits import check_apart
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.detection.detector import check_backbone
from vantage.evaluate.protocols.detection.examples import training_images
from vantage.evaluate.protocols.detection.networks import FourthStage, Pyramid
from vantage.evaluate.protocols.detection.outputs import Boxes, Keypoints, Masks, Output
from vantage.evaluate.protocols.detection.schedules import SCHEDULES, DetectionSchedule, ScheduleName
from vantage.evaluate.protocols.detection.scoring import Detections, Precision, precision_of
from vantage.evaluate.protocols.detection.sizes import Sizes
from vantage.evaluate.protocols.detection.sources.annotated import Annotated
from vantage.evaluate.protocols.detection.sources.masks import coco_tools
from vantage.evaluate.protocols.detection.sources.opening import split_annotated
from vantage.evaluate.protocols.detection.sources.selections import OfClasses
from vantage.evaluate.protocols.detection.training import DetectorTraining, detect, seeded
from vantage.evaluate.protocols.detection.voc_scoring import is_voc, voc_precision_of
from vantage.evaluate.result import Outcome
from vantage.evaluate.task import OwnTask, Task
from vantage.frozen.encoder import FrozenEncoder
from vantage.storage.cache import hash_of

__all__ = ["DetectorProtocol", "as_annotated", "average_precisions"]

_INITIAL = 0xDE74  # what a seed is for


@dataclass(frozen=True)
class DetectorProtocol(OwnTask):
    """The settings that all detectors have, and how one is trained and judged with them."""

    name: ClassVar[str]
    version: ClassVar[int]
    output: ClassVar[Output]
    """What is told of each instance, where that does not depend on the images."""

    schedule: ScheduleName = "1x"
    """The papers' steps of 16 images, falls of the rate and shorter sides in training. For COCO, of 640 to 800 pixels
    and with 1,000 steps in which the rate rises: 1x (90,000 steps, falls after 60,000 and 80,000), 2x (180,000; 120,000
    and 160,000), 6x (540,000; 480,000 and 520,000). For PASCAL VOC, of 480 to 800 and with 100: voc (24,000; 18,000 and
    22,000)."""
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
    shapes_apart: bool = True
    """Whether wide images and high ones are shown in steps of their own, so that less is padded: as Detectron2 does for
    the images of one GPU. One step of 16 may show both."""
    precise_batches: int = 200
    """Training batches (at most as many as steps) over which BatchNorms average their statistics before testing."""
    sizes: Sizes = field(default_factory=Sizes)
    """Sides of images and anchors."""
    seed: int = 0
    """Of new weights, order, mirrored images, sides and sampled regions."""

    network_on: Pyramid | FourthStage = field(default_factory=Pyramid)
    """How the backbone is used."""

    def __post_init__(self) -> None:
        if self.schedule not in SCHEDULES:
            raise UserError(f"detection: there is no schedule {self.schedule!r} (schedules: {', '.join(SCHEDULES)})")
        if self.steps < 0 or self.precise_batches < 0:
            raise UserError(
                f"detection: steps is {self.steps} and precise_batches {self.precise_batches}; give 0 or more"
            )
        self.scaled_schedule()
        self.scheduled_sizes()

    def scaled_schedule(self) -> DetectionSchedule:
        """The schedule for this batch, rate and number of steps."""
        scaled = replace(SCHEDULES[self.schedule], rate=self.rate).for_batch(self.batch)
        return scaled.in_steps(self.steps) if self.steps else scaled

    def scheduled_sizes(self) -> Sizes:
        """The sizes, with the schedule's sides in training where none are given."""
        return self.sizes.or_sides(SCHEDULES[self.schedule].short_sides)

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`, both `Annotated`. Raises `UserError` where the images do not serve, or the
        backbone is no ResNet of three channels."""
        coco_tools("cocoeval")  # what is not installed is told before hours of training
        output, train, test = self.prepare(as_annotated(train), as_annotated(test))
        taught, schedule, sizes = (
            training_images(train, output, self.keep_empty),
            self.scaled_schedule(),
            self.scheduled_sizes(),
        )
        device = work.resolved_device()
        with seeded(draws.mix(self.seed, _INITIAL), device):
            detector = self.network_on.build(encoder, len(train.classes), output, sizes)
        facts = (encoder.digest(), cache_key(taught), repr((self, output)), device.type, torch.__version__, "2")
        kept = work.cache / "detectors" / f"{hash_of(fact.encode() for fact in facts)}.safetensors"
        course = DetectorTraining(schedule, self.seed, self.precise_batches, kept, shapes_apart=self.shapes_apart)
        losses = course(detector, taught, output, work, encoder.name)
        found = detect(detector, test, output, work, encoder.name)
        measures, details = average_precisions(test, found, output)
        course.forget()
        shown = {label for number in range(len(taught)) for label in taught.instances(number).label.tolist()}
        details |= {
            "steps": schedule.steps,
            "falls": list(schedule.falls),
            "rising steps": schedule.warm_up,
            "rate": schedule.rate,
            "shorter sides in training": list(sizes.short_sides),
            "training images left out": len(train) - len(taught),
            "classes without training boxes": [n for number, n in enumerate(train.classes) if number not in shown],
            "detections": sum(len(one.label) for one in found),
            "losses": _thinned(losses),
        }
        return Outcome(measures, len(taught), len(test), {}, details)

    def task(self, train: Source, test: Source | None) -> Task:
        """Annotated images; without `test`, a fifth of all of them, drawn with seed 0. Raises `UserError` where
        pycocotools is not installed, for test images that are the training images, and for images that do not serve."""
        coco_tools("cocoeval")
        known, words = as_annotated(train), "a set of its own"
        if test is None:
            words = f"a fifth of the same {len(known)} images, drawn with seed 0"
            known, asked = split_annotated(known)
        else:
            asked = as_annotated(test)
            check_apart(known, asked)
        self.check(known, asked)
        without = "raw pixels have no detector"
        return Task(self, known, asked, words, tools=("pycocotools",), pixels=without, check=check_backbone)

    def prepare(self, train: Annotated, test: Annotated) -> tuple[Output, Annotated, Annotated]:
        """What is told of each instance, and what images of both sides show of that; the classes are those of `train`.
        Raises `UserError` for test images of which it is not told, or of other classes."""
        if isinstance(self.output, Masks) and not test.has_masks:
            raise UserError(
                "instance segmentation needs the pixels of every instance, and the test images have boxes only"
            )
        return self.output, train, test if test.classes == train.classes else OfClasses(test, train.classes)

    def check(self, train: Annotated, test: Annotated) -> None:
        """Raises `UserError` for images that do not serve, before anything is trained."""
        output, train, _ = self.prepare(train, test)
        training_images(train, output, self.keep_empty)


def as_annotated(source: Source | Annotated) -> Annotated:
    """The source, if it tells what is where; raises `UserError` for others."""
    if not isinstance(source, Annotated):
        raise UserError(
            "detection needs images with boxes: open them with open_annotated (a COCO file, or a folder of PASCAL VOC)"
        )
    return source


def average_precisions(
    test: Annotated, found: list[Detections], output: Output
) -> tuple[dict[str, float], dict[str, object]]:
    """What papers report first: of masks or keypoints, then of boxes; of VOC's images by VOC's own code as well."""
    measures, details = _told(precision_of(test, found, "bbox"), output, "box ")
    if isinstance(output, Masks):
        further, more = _told(precision_of(test, found, "segm"), Boxes(), "mask ", always=True)
        measures, details = further | measures, details | more
    if isinstance(output, Keypoints):
        further, more = _told(precision_of(test, found, "keypoints"), Boxes(), "keypoint ", always=True)
        measures, details = further | measures, details | more
    if is_voc(test):
        further, more = _told(voc_precision_of(test, found), Boxes(), "VOC07 ", always=True)
        measures, details = measures | further, details | more
    return measures, details


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
