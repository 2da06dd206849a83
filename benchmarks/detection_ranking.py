"""Detectors on a frozen network that was trained with labels for minutes, and on an untrained frozen network.

    python benchmarks/detection_ranking.py --data ../shared/data --work /tmp/ranking

A ResNet-18 is trained as a classifier of CIFAR-10's training images (JPEG). Each detector protocol is then trained on
it with all stages frozen (--set frozen_stages=5; on C4, the convolutions of the fifth stage are still trained),
and in the same way, with the same seed, on an untrained ResNet-18. Scenes are made of CIFAR-10's test images
(pasted_scenes.py); training and test scenes share no image. For both networks, BatchNorm follows the pyramid and the
fifth stage, so the scale of features matters little there; the proposals of C4 use the fourth stage unnormalized.

Detection on COCO's own photographs is added: 150 for training and 50 for testing are far too few to tell features
apart, and the rows are reported as they are.
"""

import argparse
import json
import tarfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from pasted_scenes import Photographs, boards, points_of, things, write_scenes
from timing import write_results
from torch import Tensor, nn

import vantage
from vantage.data import Source, labels_of, open_source
from vantage.data.resident import decode_all
from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.encoding import Work
from vantage.evaluate.protocols.detection import (
    AnnotatedSource,
    Detection,
    DetectionC4,
    FourthStage,
    InstancesC4,
    InstanceSegmentation,
    KeypointDetection,
    Pyramid,
    Sizes,
    open_annotated,
)
from vantage.evaluate.protocols.detection import DetectorProtocol as Protocol
from vantage.frozen.encoder import load, random_encoder
from vantage.learner import Learner
from vantage.progress import PlainProgress
from vantage.training.folder import checkpoint, settings

SIZES = Sizes((96,), 96, 160, (24, 32, 40, 48, 72), regions=16, proposals=50)
FEWER = replace(SIZES, regions=8, proposals=20)  # heads of masks, keypoints and C4 cost most
STAGES = ((32, 40_000), (48, 20_000))  # side in pixels and number of images of each stage of the classifier's training


def main() -> None:
    """Train, evaluate, and write results/detection_ranking.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for finished parts, which are not repeated")
    parser.add_argument("--only", nargs="+", help="names of cases; if omitted, all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=0, help="steps of every protocol, instead of its own number")
    options = parser.parse_args()
    folder, file = options.work, options.work / "rows.json"
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    if not rows:
        rows.append(train_with_labels(options.data, folder / "run"))
        file.write_text(json.dumps(rows))
    sets = {
        "things": pasted_images(options.data, folder, "things"),
        "boards": pasted_images(options.data, folder, "boards"),
    }
    sets["photographs"] = photographs(options.data, folder)
    trained_encoder = load(folder / "run")
    for seed in options.seeds:
        for name, (scenes, protocol) in cases(seed, options.steps).items():
            for encoder in (trained_encoder, random_encoder(trained_encoder.run, seed)):
                key = {"protocol": name, "encoder": encoder.name, "seed": seed, "steps": protocol.steps}
                repeats = any(all(row.get(part) == value for part, value in key.items()) for row in rows)
                if repeats or (options.only and name not in options.only):
                    continue
                start, (train, test) = time.process_time(), sets[scenes]
                outcome = protocol(
                    encoder, train, test, Work("cpu", cache=folder, num_workers=1, progress=PlainProgress())
                )
                counts = {"training images": outcome.train_images, "test images": outcome.test_images}
                seconds = {"seconds of one core": time.process_time() - start}
                rows.append({**key, "scenes": scenes, **outcome.measures, **counts, **seconds})
                rows[-1]["losses"] = outcome.details["losses"]
                file.write_text(json.dumps(rows))
                print({part: value for part, value in rows[-1].items() if part != "losses"}, flush=True)
    print(write_results("detection_ranking", rows))


def cases(seed: int, steps: int) -> dict[str, tuple[str, Protocol]]:
    """The cases by name: the scenes that a protocol is trained on, and the protocol, with all stages frozen. The
    learning rate of a step is .02."""
    four: dict[str, Any] = {"batch_size": 4, "learning_rate": 0.08, "precise_batches": 20, "seed": seed, "sizes": SIZES}
    two = four | {"batch_size": 2, "learning_rate": 0.16, "sizes": FEWER}
    pyramid, stage = Pyramid(5), FourthStage(5)
    return {
        "detection": ("things", Detection("1x", steps or 300, **four, network_on=pyramid)),
        "keypoints": ("boards", KeypointDetection("1x", steps or 400, **two, network_on=pyramid)),
        "instances": ("things", InstanceSegmentation("1x", steps or 120, **two, network_on=pyramid)),
        "detection-c4": ("things", DetectionC4("1x", steps or 100, **two, network_on=stage)),
        "instances-c4": ("things", InstancesC4("1x", steps or 100, **two, network_on=stage)),
        "photographs": ("photographs", Detection("1x", steps or 150, **four, network_on=pyramid)),
    }


def train_with_labels(data: Path, folder: Path) -> dict[str, Any]:
    """Train a backbone as a classifier, and write a run's folder with it as its checkpoint; returns a row of facts."""
    run = replace(vantage.simclr(32), recipe="trained with labels", encoders=Shared(Encoder(ResNet(18), LinearHead(8))))
    learner = Learner(run.encoders, run.branches, images=64, seed=0)
    backbone = learner.networks.encoders[0].get_submodule("backbone")
    view = random_encoder(run).view
    source = open_source(f"{data}/cifar10-jpg.tar.gz#train")
    pixels, label = decode_all(source, 32, cache=folder.parent), labels_of(source)
    test = open_source(f"{data}/cifar10-jpg.tar.gz#test")
    head = nn.Linear(512, len(source.classes))
    steps = sum(images // 128 for _, images in STAGES)
    optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()], weight_decay=0.05)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=steps)
    generator, start = torch.Generator().manual_seed(0), time.process_time()
    for side, images in STAGES:
        order = torch.randperm(len(pixels), generator=generator)[: images // 128 * 128]
        right = 0.0
        for rows in order.split(128):
            score = head(backbone(augment(view.finish(pixels[rows]), side, generator)))
            loss = F.cross_entropy(score, label[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            right += float((score.argmax(1) == label[rows]).sum())
        print(f"{side} pixels: {100 * right / len(order):.1f} % of the training crops are right", flush=True)
    seconds = time.process_time() - start
    settings.write(run, folder)
    checkpoint.save(folder, steps, {f"learner.{name}": value for name, value in learner.state_dict().items()}, {})
    backbone.eval()
    sample = torch.arange(0, len(test), 10)
    with torch.no_grad():
        images = view.finish(decode_all(test, 32, cache=folder.parent)[sample])
        guesses = head(backbone(F.interpolate(images, size=STAGES[-1][0], mode="bicubic"))).argmax(1)
    top1 = 100 * float((guesses == labels_of(test)[sample]).float().mean())
    return {"part": "training", "images": STAGES, "seconds of one core": seconds, "top-1 of 1,000 test images": top1}


def augment(images: Tensor, side: int, generator: torch.Generator) -> Tensor:
    """Each image shifted by up to four pixels, half of them mirrored, and all resized to `side` pixels."""
    with_border = F.pad(images, (4, 4, 4, 4), mode="reflect")
    top, left = torch.randint(0, 9, (2, len(images)), generator=generator)
    rows, columns = top[:, None] + torch.arange(32), left[:, None] + torch.arange(32)
    columns = torch.where(torch.rand(len(images), 1, generator=generator) < 0.5, columns.flip(1), columns)
    number = torch.arange(len(images))[:, None, None]
    crop = with_border.permute(0, 2, 3, 1)[number, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2).contiguous()
    return crop if side == 32 else F.interpolate(crop, size=side, mode="bicubic")


def pasted_images(data: Path, folder: Path, kind: str) -> tuple[AnnotatedSource, AnnotatedSource]:
    """Scenes for training and for testing; each has its own half of CIFAR-10's test images and of the flowers."""
    source = open_source(f"{data}/cifar10-jpg.tar.gz#test")
    if not (folder / "flowers5-128").exists():
        with tarfile.open(data / "flowers5-128.tar.gz") as tar:
            tar.extractall(folder, filter="data")
    flowers = sorted((folder / "flowers5-128").rglob("*.jpg"))
    categories: list[dict[str, Any]] = [{"id": n + 1, "name": name} for n, name in enumerate(source.classes)]
    if kind == "boards":
        categories = [{"id": 1, "name": "board", "keypoints": points_of(source.classes)}]
    paint: Callable[..., list[dict[str, Any]]] = things if kind == "things" else boards
    sources = []
    for part, (split, count) in enumerate((("train", 240), ("test", 80))):
        file = write_scenes(
            folder / kind, split, count, paint, half(source, part), flowers[part::2], categories, seed=part
        )
        sources.append(open_annotated(file))
    return sources[0], sources[1]


def half(source: Source, part: int) -> Photographs:
    """Every second image of each class."""
    pixels, label = decode_all(source, 32).permute(0, 2, 3, 1).numpy(), labels_of(source).numpy()
    return {number: pixels[label == number][part::2] for number in range(len(source.classes))}


def photographs(data: Path, folder: Path) -> tuple[AnnotatedSource, AnnotatedSource]:
    """COCO's own photographs: 150 for training, 50 for testing."""
    for archive in ("tiny-coco-100", "coco-train-100"):
        if not (folder / archive).exists():
            with tarfile.open(data / f"{archive}.tar.gz") as tar:
                tar.extractall(folder / archive, filter="data")
    first = folder / "tiny-coco-100/tiny-coco/annotations"
    second = folder / "coco-train-100/coco-train-100/annotations/instances_train2017.json"
    train = open_annotated(f"{first}/instances_train2017.json,{second}")
    return train, open_annotated(first / "instances_val2017.json")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
