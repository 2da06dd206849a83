"""Detectors on a few photographs, on one core: a check that they learn what they are shown, and nothing more.

    python benchmarks/detection.py TAR [--steps 200] [--more 600] [--few 10] [--work FOLDER]

TAR is tiny-coco-100.tar.gz: 50 photographs, with boxes, masks and keypoints as in COCO. The backbone is a ResNet-18
with random weights, and all of it is trained. Images have a shorter side of 96 pixels.

Overfitting: the training images are the ten photographs with the fewest boxes among those whose boxes are all at least
a sixth of the shorter side. Detectors are evaluated on the same ten. Masks and C4 learn more slowly and get --more
steps. High AP shows that images, boxes, classes, losses and scoring fit together. It shows nothing about how well
features transfer: fifty photographs are far too few. Keypoints, whose deep head starts untrained, train for a few
steps, to check that the loss falls and AP is computed.

A stopped run continues where it was (in --work); a finished case is not repeated.
"""

import argparse
import json
import tarfile
import time
from dataclasses import replace
from pathlib import Path

import torch
from timing import write_results

from vantage import moco_v2
from vantage.data import cache_folder
from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.encoding import Work
from vantage.evaluate.protocols.detection import (
    AnnotatedSource,
    Detection,
    DetectionC4,
    InstancesC4,
    InstanceSegmentation,
    KeypointDetection,
    SelectedImages,
    Sizes,
    open_annotated,
)
from vantage.evaluate.protocols.detection import DetectorProtocol as Protocol
from vantage.frozen.encoder import random_encoder
from vantage.progress import PlainProgress

SIZES = Sizes((96,), 96, 160, (12, 24, 48, 72, 96), regions=32, proposals=50)
FEWER = replace(SIZES, regions=8, proposals=20)  # heads of masks, keypoints and C4 cost most
BATCH, RATE = 2, 0.12  # .015 at this batch


def easiest_ten(source: AnnotatedSource) -> AnnotatedSource:
    """The ten photographs that are easiest to learn by heart."""
    easy = []
    for number in range(len(source)):
        instances, smallest_side = source.instances(number), min(source.size(number)) / 6
        sides = instances.box[:, 2:] - instances.box[:, :2]
        if len(instances) and not bool(instances.crowd.any()) and bool((sides >= smallest_side).all()):
            easy.append((len(instances), number))
    return SelectedImages(source, [number for _, number in sorted(easy)[:10]])


def case(protocol: Protocol, source: AnnotatedSource, work: Work) -> dict[str, object]:
    """Train and evaluate on the same images."""
    run = moco_v2(224)
    encoder = Encoder(ResNet(18), LinearHead(128))
    start = time.process_time()
    outcome = protocol(random_encoder(replace(run, encoders=Shared(encoder))), source, source, work)
    losses = outcome.details["losses"]
    return {
        "images": outcome.test_images,
        "boxes": sum(len(source.instances(number)) for number in range(len(source))),
        "steps": outcome.details["steps"],
        "loss, first tenth": sum(losses[: len(losses) // 10 or 1]) / (len(losses) // 10 or 1),
        "loss, last tenth": sum(losses[-(len(losses) // 10 or 1) :]) / (len(losses) // 10 or 1),
        "measures": dict(outcome.measures),
        "cpu_seconds": time.process_time() - start,
    }


def main() -> None:
    """Run the unfinished cases, and write the results of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tar", type=Path)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--more", type=int, default=600)
    parser.add_argument("--few", type=int, default=10)
    parser.add_argument("--work", type=Path, default=cache_folder() / "detection-benchmark")
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.work.mkdir(parents=True, exist_ok=True)
    with tarfile.open(options.tar) as tar:
        tar.extractall(options.work, filter="data")
    files = options.work / "tiny-coco" / "annotations"
    boxes = easiest_ten(open_annotated(files / "instances_train2017.json"))
    people = open_annotated(files / "person_keypoints_train2017.json")
    with_points = [n for n in range(len(people)) if bool((people.instances(n).points[..., 2] > 0).any())]  # pyright: ignore
    persons = SelectedImages(people, with_points[:10])
    short = {"batch_size": BATCH, "learning_rate": RATE, "sizes": FEWER, "precise_batches": 20}
    cases = [
        ("detection, overfitting", Detection("1x", options.steps, BATCH, RATE, precise_batches=20, sizes=SIZES), boxes),
        ("instances, overfitting", InstanceSegmentation("1x", options.more, **short), boxes),
        ("detection-c4, overfitting", DetectionC4("1x", options.more, **short), boxes),
        ("instances-c4, overfitting", InstancesC4("1x", options.more, **short), boxes),
        ("keypoints, a few steps", KeypointDetection("1x", options.few, **short), persons),
    ]
    settings = {"side": 96, "batch": BATCH, "rate of a step": RATE * BATCH / 16, "backbone": "ResNet-18, random"}
    rows = []
    for name, protocol, source in cases:
        file = options.work / f"{name.replace(', ', '-').replace(' ', '-')}-{protocol.steps}.json"
        if not file.is_file():
            file.write_text(
                json.dumps(case(protocol, source, Work("cpu", cache=options.work, progress=PlainProgress())))
            )
        rows.append({"case": name} | settings | json.loads(file.read_text()))
        print(rows[-1], flush=True)
    print(write_results("detection", rows))


if __name__ == "__main__":
    main()
