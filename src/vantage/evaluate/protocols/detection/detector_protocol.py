"""How a detector is trained on one set of images and evaluated on another, whatever it predicts and is built on."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import torch

from vantage import draws
from vantage.data.shared_files import shared_files_in_words
from vantage.data.sources.source import Source, cache_key
from vantage.data.splits import check_apart
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.detection.cascade import Cascade
from vantage.evaluate.protocols.detection.detector import check_backbone
from vantage.evaluate.protocols.detection.examples import training_images
from vantage.evaluate.protocols.detection.networks import FourthStage, Pyramid
from vantage.evaluate.protocols.detection.outputs import Boxes, Keypoints, Masks, Output
from vantage.evaluate.protocols.detection.schedules import SCHEDULES, DetectionSchedule, ScheduleName
from vantage.evaluate.protocols.detection.scoring import Detections, Precision, check_shown, precision_of
from vantage.evaluate.protocols.detection.sizes import Sizes
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource
from vantage.evaluate.protocols.detection.sources.masks import coco_tools
from vantage.evaluate.protocols.detection.sources.opening import split_annotated
from vantage.evaluate.protocols.detection.sources.selections import OfClasses
from vantage.evaluate.protocols.detection.training import DetectorTraining, detect
from vantage.evaluate.protocols.detection.voc_scoring import is_voc, voc_precision_of
from vantage.evaluate.result import Outcome
from vantage.evaluate.task import OwnTask, Task
from vantage.frozen.encoder import FrozenEncoder
from vantage.storage.cache import hash_of

__all__ = ["DetectorProtocol", "as_annotated", "average_precisions"]


@dataclass(frozen=True)
class DetectorProtocol(OwnTask):
    """The settings that all detectors share, and how one is trained and evaluated with them."""

    name: ClassVar[str]
    version: ClassVar[int]
    images_with: ClassVar[str] = "boxes"
    output: ClassVar[Output]
    """What is predicted for each instance, if that does not depend on the images."""

    schedule: ScheduleName = "1x"
    """The papers' steps of 16 images: 1x (90,000), 2x (180,000) or 6x (540,000) of COCO, at sides of 640 to 800 pixels;
    voc (24,000) of PASCAL VOC, at 480 to 800. When the learning rate drops: `SCHEDULES`."""
    steps: int = 0
    """Number of steps, for small sets; the learning rate drops at the same shares of them. 0: the schedule's."""
    batch_size: int = 16
    """Images per step. A number other than 16 scales the schedule's steps and the learning rate, but not `steps`."""
    learning_rate: float = 0.02
    """Learning rate for 16 images."""
    keep_empty: bool = False
    """Whether training images without boxes are kept; the papers leave them out. In testing they always count."""
    shapes_apart: bool = True
    """Whether landscape and portrait images are trained on in separate steps, as Detectron2 does on each GPU, so that
    images need less padding. The last of every 16 steps may hold both."""
    precise_batches: int = 200
    """Training batches, at most as many as steps, over which BatchNorm averages its statistics before testing."""
    sizes: Sizes = field(default_factory=Sizes)
    """Sides of images and anchors."""
    seed: int = 0
    """Seed of new weights, order, mirrored images, sides and sampled regions."""

    network_on: Pyramid | FourthStage | Cascade = field(default_factory=Pyramid)
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
        """The schedule for this batch size, learning rate and number of steps."""
        schedule = replace(SCHEDULES[self.schedule], learning_rate=self.learning_rate).for_batch_size(self.batch_size)
        return schedule.in_steps(self.steps) if self.steps else schedule

    def scheduled_sizes(self) -> Sizes:
        """The sizes, with the schedule's sides in training if omitted."""
        return self.sizes.or_sides(SCHEDULES[self.schedule].short_sides)

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, evaluate on `test`, both `AnnotatedSource`. Raises `UserError` for unsuitable images, and
        for a backbone that is not a ResNet of three channels."""
        coco_tools("cocoeval")  # a missing library is reported before hours of training
        output, train, test = self.prepare(as_annotated(train), as_annotated(test))
        images = training_images(train, output, self.keep_empty)
        schedule, sizes = self.scaled_schedule(), self.scheduled_sizes()
        device = work.resolved_device()
        with draws.torch_seed(draws.mix(self.seed, draws.Purpose.DETECTION_START), device):
            detector = self.network_on.build(encoder, len(train.classes), output, sizes)
        facts = (encoder.digest(), cache_key(images), repr((self, output)), device.type, torch.__version__, "2")
        state_file = work.cache / "detectors" / f"{hash_of(facts)}.safetensors"
        training = DetectorTraining(
            schedule, self.seed, self.precise_batches, state_file, shapes_apart=self.shapes_apart
        )
        losses = training(detector, images, output, work, encoder.name)
        detections = detect(detector, test, output, work, encoder.name)
        measures, details = average_precisions(test, detections, output)
        training.forget()
        labels = {label for number in range(len(images)) for label in images.instances(number).label.tolist()}
        details |= {
            "steps": schedule.steps,
            "milestones": list(schedule.milestones),
            "rising steps": schedule.warmup_steps,
            "learning_rate": schedule.learning_rate,
            "shorter sides in training": list(sizes.short_sides),
            "training images left out": len(train) - len(images),
            "classes without training boxes": [
                name for number, name in enumerate(train.classes) if number not in labels
            ],
            "detections": sum(len(one.label) for one in detections),
            "losses": _mean_in_parts(losses),
        }
        return Outcome(measures, len(images), len(test), {}, details)

    def task(self, train: Source, test: Source | None) -> Task:
        """Annotated images; without `test`, a fifth of all of them, drawn with seed 0. Raises `UserError` if
        pycocotools is not installed, for test images that are the training images, and for unsuitable images."""
        coco_tools("cocoeval")
        images = as_annotated(train)
        if test is None:
            split = f"a fifth of the same {len(images)} images, drawn with seed 0"
            images, test_images = split_annotated(images)
        else:
            test_images = as_annotated(test)
            check_apart(images, test_images)
            split = f"a set of its own{shared_files_in_words(images, test_images)}"
        self.check(images, test_images)
        refusal = "raw pixels have no detector"
        return Task(self, images, test_images, split, tools=("pycocotools",), pixels=refusal, check=check_backbone)

    def prepare(self, train: AnnotatedSource, test: AnnotatedSource) -> tuple[Output, AnnotatedSource, AnnotatedSource]:
        """What is predicted for each instance, and the images of both sides with the classes of `train`. Raises
        `UserError` for test images that lack these annotations, or that show other classes."""
        if isinstance(self.output, Masks) and not test.has_masks:
            raise UserError("instance segmentation needs a mask of every instance, but the test images have boxes only")
        return self.output, train, test if test.classes == train.classes else OfClasses(test, train.classes)

    def check(self, train: AnnotatedSource, test: AnnotatedSource) -> None:
        """Raises `UserError` for unsuitable images, before anything is trained."""
        output, train, test = self.prepare(train, test)
        training_images(train, output, self.keep_empty)
        check_shown(test)


def as_annotated(source: Source | AnnotatedSource) -> AnnotatedSource:
    """The source, if it has annotations; raises `UserError` if not."""
    if not isinstance(source, AnnotatedSource):
        raise UserError(
            "detection needs images with boxes: open them with open_annotated (a COCO file, or a folder of PASCAL VOC)"
        )
    return source


def average_precisions(
    test: AnnotatedSource, detections: list[Detections], output: Output
) -> tuple[dict[str, float], dict[str, object]]:
    """In the papers' order: AP of masks or keypoints, then of boxes; for VOC's images also by VOC's own definition."""
    measures, details = _report(precision_of(test, detections, "bbox"), "" if isinstance(output, Boxes) else "box ")
    if isinstance(output, Masks):
        values, more = _report(precision_of(test, detections, "segm"), "mask ")
        measures, details = values | measures, details | more
    if isinstance(output, Keypoints):
        values, more = _report(precision_of(test, detections, "keypoints"), "keypoint ")
        measures, details = values | measures, details | more
    if is_voc(test):
        values, more = _report(voc_precision_of(test, detections), "VOC07 ")
        measures, details = measures | values, details | more
    return measures, details


def _report(precision: Precision, prefix: str) -> tuple[dict[str, float], dict[str, object]]:
    """The three numbers that papers report, and everything behind them, each name with the prefix."""
    measures = {f"{prefix}{name}": precision.measures[name] or 0.0 for name in ("AP", "AP50", "AP75")}
    of_class = {name: value for name, value in precision.of_class.items() if value is not None}
    return measures, {f"{prefix}measures": precision.measures, f"{prefix}AP of each class shown": of_class}


def _mean_in_parts(losses: list[float]) -> list[float]:
    """The mean loss of each of at most 100 equal parts of the training."""
    size = -(-len(losses) // 100) or 1
    parts = (losses[start : start + size] for start in range(0, len(losses), size))
    return [sum(part) / len(part) for part in parts]
