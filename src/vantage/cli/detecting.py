"""`vantage evaluate detection`, `instances`, `keypoints`: detectors built on a run's backbone."""

from dataclasses import dataclass
from pathlib import Path

from vantage.cli.arguments import Command, parse
from vantage.cli.console import Console
from vantage.cli.results import kept_or_out, tell
from vantage.composition.fields import headings, leaves, options, replaced
from vantage.data.threads import CORES

__all__ = ["DETECTING"]


@dataclass(frozen=True)
class Detecting:
    """What the detectors are told beside the protocol's own fields."""

    run: str
    """Folder of the run."""

    data: str
    """Annotated images to train on: a COCO file such as coco/annotations/instances_train2017.json (with #FOLDER where
    its images lie elsewhere), or a folder of PASCAL VOC with its split, such as VOC2007#trainval; several with commas
    between."""

    test: str = ""
    """Annotated test images, named as --data is; without, a fifth of the images is held out."""

    baselines: bool = False
    """Whether the same detector on a random encoder is trained and judged as well."""

    out: str = ""
    """File for the result, as JSON; without, it is kept in RUN/evaluations."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    workers: int = CORES
    """Threads that decode images."""

    network: int | None = None
    """Which of the trained networks, for runs that have one per view."""


def _detect(name: str, words: list[str], console: Console) -> int:
    from vantage.cli.images import work_of
    from vantage.evaluate import evaluate
    from vantage.evaluate.protocols.detection import DETECTORS, open_annotated
    from vantage.frozen.encoder import load

    kind = next(kind for kind in DETECTORS if kind.name == name)
    fields = tuple(leaves(kind()))
    command = Command(f"vantage evaluate {name}", kind.__doc__ or "", dict(headings(kind())))
    asked = parse(command, (*options(Detecting, ("run",)), *fields), words).values
    protocol = replaced(kind(), {leaf.path: asked[leaf.path] for leaf in fields})
    load(Path(asked["run"]), asked["network"])  # a mistake in the run is told before the images are looked at
    out = kept_or_out(asked)
    train = open_annotated(asked["data"])
    console.note(f"{len(train):,} annotated images, {len(train.classes)} classes")
    result = evaluate(
        Path(asked["run"]),
        protocol,
        train,
        open_annotated(asked["test"]) if asked["test"] else None,
        baselines=asked["baselines"],
        network=asked["network"],
        work=work_of(asked, console),
        out=out,
    )
    details = next(iter(result.outcomes.values())).details
    console.note(
        f"{details['steps']:,} steps; {details['training images left out']} training images have nothing to find"
    )
    tell(result, console, asked["run"], out)
    return 0


def evaluate_detection(words: list[str], console: Console) -> int:
    """Train Faster R-CNN on a feature pyramid of the backbone, and measure the average precision of boxes."""
    return _detect("detection", words, console)


def evaluate_detection_c4(words: list[str], console: Console) -> int:
    """Train Faster R-CNN on the backbone's fourth stage, the fifth as head."""
    return _detect("detection-c4", words, console)


def evaluate_instances(words: list[str], console: Console) -> int:
    """Train Mask R-CNN on a feature pyramid of the backbone, and measure the average precision of masks."""
    return _detect("instances", words, console)


def evaluate_instances_c4(words: list[str], console: Console) -> int:
    """Train Mask R-CNN on the backbone's fourth stage, the fifth as head."""
    return _detect("instances-c4", words, console)


def evaluate_keypoints(words: list[str], console: Console) -> int:
    """Train Keypoint R-CNN on a feature pyramid of the backbone, and measure the average precision of keypoints."""
    return _detect("keypoints", words, console)


DETECTING = {
    "detection": evaluate_detection,
    "detection-c4": evaluate_detection_c4,
    "instances": evaluate_instances,
    "instances-c4": evaluate_instances_c4,
    "keypoints": evaluate_keypoints,
}
"""The verbs behind `evaluate`, by protocol."""
