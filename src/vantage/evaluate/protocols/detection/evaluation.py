"""Judge a run by a detector built on it, and keep the result beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from vantage.data.splits import check_apart
from vantage.encoding import Work
from vantage.evaluate.judge import Result, judged, keep
from vantage.evaluate.protocols.detection.detector import check_backbone
from vantage.evaluate.protocols.detection.protocols import (
    Detection,
    DetectionC4,
    InstancesC4,
    InstanceSegmentation,
    KeypointDetection,
)
from vantage.evaluate.protocols.detection.sources.annotated import Annotated
from vantage.evaluate.protocols.detection.sources.masks import coco_tools
from vantage.evaluate.protocols.detection.sources.opening import split_annotated
from vantage.evaluate.task import Task
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder

__all__ = ["DETECTORS", "DetectorTask", "Protocol", "detector_task", "evaluate_detector"]

Protocol = Detection | DetectionC4 | InstanceSegmentation | InstancesC4 | KeypointDetection
"""A protocol whose images are annotated."""

DETECTORS: Sequence[type[Protocol]] = (Detection, DetectionC4, InstanceSegmentation, InstancesC4, KeypointDetection)
"""All of them; each has a `name`."""


def evaluate_detector(
    run_folder: Path,
    protocol: Protocol,
    train: Annotated,
    test: Annotated | None = None,
    *,
    baselines: bool = False,
    network: int | None = None,
    work: Work | None = None,
    out: Path | None = None,
) -> Result:
    """Train a detector on a run's newest checkpoint, and write the result as JSON: to `out`, or under
    `run_folder`/evaluations.

    Without `test`, a fifth of the images of `train`, drawn with seed 0, is for testing. With `baselines`, the same
    detector on a random encoder of the same architecture, from the run's seed, is trained the same way; raw pixels have
    no detector.

    Raises `UserError` where the run has no usable checkpoint or is no ResNet of three channels, or where images,
    classes or annotations do not serve; see the protocols.
    """
    work = work or Work()
    coco_tools("cocoeval")
    trained = load(run_folder, network)
    task = detector_task(protocol, train, test)
    encoders = [trained]
    if baselines:
        encoders.append(random_encoder(trained.run, trained.run.seed, network))
    return keep(judged(task, encoders, work), run_folder, out)


@dataclass(frozen=True)
class DetectorTask(Task):
    """A detector, and the annotated images by which it judges."""

    tools: ClassVar[tuple[str, ...]] = ("pycocotools",)
    pixels: ClassVar[str] = "raw pixels have no detector"

    def check(self, trained: FrozenEncoder) -> None:
        """Raises `UserError` for what no detector is built on."""
        check_backbone(trained)


def detector_task(protocol: Protocol, train: Annotated, test: Annotated | None = None) -> DetectorTask:
    """A detector, with its images as `evaluate_detector` has them. Raises `UserError` where pycocotools is not
    installed, for test images that are the training images, and for images that do not serve."""
    coco_tools("cocoeval")
    if test is None:
        kind = f"a fifth of the same {len(train)} images, drawn with seed 0"
        train, test = split_annotated(train)
    else:
        check_apart(train, test)
        kind = "a set of its own"
    protocol.check(train, test)
    return DetectorTask(protocol, train, test, kind)
