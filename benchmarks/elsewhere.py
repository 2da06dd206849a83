"""A network trained for minutes, evaluated away from its training images: on other sets, and on every pixel of scenes.

    python benchmarks/elsewhere.py --data ../shared/data --work /tmp/elsewhere

A classifier with four convolutions is trained with labels on Tiny-ImageNet's 50 classes, at 32 pixels, for a few passes
of AdamW with random crops and flips. It is then frozen and compared with an untrained frozen network of the same kind:

* transfer: CIFAR-10 (JPEG), MNIST, flowers5 and Tiny-ImageNet's own validation images, each normalized by its own mean
  and deviation; nearest neighbors (k = 20), at most 5,000 training and 2,500 test images per set
* segmentation: mosaics of nine CIFAR-10 images each, 10 classes, 100 for training and 60 for testing; and photographs
  of COCO with five classes made from its categories (background, person, animal, vehicle, any other thing), 150 and 50

Sets this small can show that training matters, but cannot reproduce published numbers.
"""

import argparse
import io
import json
import tarfile
import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw
from timing import write_results
from torch import Tensor, nn

import vantage
from vantage.data import Source, open_source
from vantage.data.resident import decode_all
from vantage.data.sources.masked import MaskedImages, open_masked
from vantage.data.sources.source import labels_of
from vantage.encoders import Convolutions, Encoder, LinearHead, Shared
from vantage.encoding import Work
from vantage.evaluate import KNN
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation
from vantage.evaluate.transfer.sets import TransferSet
from vantage.evaluate.transfer.transfer import transfer
from vantage.frozen.encoder import FrozenEncoder, load, random_encoder, raw_pixels
from vantage.learner import Learner
from vantage.progress import PlainProgress
from vantage.training.folder import checkpoint, settings

GROUPS = ("background", "person", "animal", "vehicle", "thing")


def main() -> None:
    """Train, evaluate, and write results/elsewhere.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for finished parts, which are not repeated")
    parser.add_argument("--epochs", type=int, default=8, help="passes over the training images")
    parser.add_argument("--scenes", nargs="+", choices=SCENES, default=list(SCENES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2], help="of the decoders")
    options = parser.parse_args()
    folder, file = options.work, options.work / "rows.json"
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    parts = {"training": lambda: [train_with_labels(options.data, folder / "run", options.epochs)]}
    parts["transfer"] = lambda: transfer_rows(options.data, folder)
    for name in options.scenes:
        parts[f"segmentation, {name}"] = partial(segmentation_rows, name, options.data, folder, options.seeds)
    for part, measure in parts.items():
        if part not in {row["part"] for row in rows}:
            rows += measure()
            file.write_text(json.dumps(rows))
    write_results("elsewhere", rows)


def train_with_labels(data: Path, folder: Path, epochs: int) -> dict[str, Any]:
    """Train a backbone as a classifier, and write a run's folder with it as its checkpoint; returns a row of facts."""
    run = replace(vantage.simclr(32), recipe="trained", encoders=Shared(Encoder(Convolutions(), LinearHead(8))))
    learner = Learner(run.encoders, run.branches, images=64, seed=0)
    backbone = learner.networks.encoders[0].get_submodule("backbone")
    view = random_encoder(run).view
    source = open_source(f"{data}/tiny-imagenet-50.tar.gz#train")
    pixels, label = decode_all(source, 32), labels_of(source)
    head = nn.Linear(256, len(source.classes))
    optimizer = torch.optim.AdamW([*backbone.parameters(), *head.parameters()], 2e-3, weight_decay=0.05)
    steps = epochs * (len(pixels) // 128)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps)
    generator, start, right = torch.Generator().manual_seed(0), time.process_time(), 0.0
    for epoch in range(epochs):
        order, right = torch.randperm(len(pixels), generator=generator), 0.0
        for rows in order[: steps // epochs * 128].split(128):
            images = augment(view.finish(pixels[rows]), generator)
            score = head(backbone(images))
            loss = F.cross_entropy(score, label[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            right += float((score.argmax(1) == label[rows]).sum())
        line = f"epoch {epoch + 1}: {100 * right / (steps // epochs * 128):.1f} % of the training crops are right"
        print(line, flush=True)
    settings.write(run, folder)
    checkpoint.save(folder, steps, {f"learner.{name}": value for name, value in learner.state_dict().items()}, {})
    accuracy = 100 * right / (steps // epochs * 128)
    seconds = time.process_time() - start
    return {"part": "training", "epochs": epochs, "seconds of one core": seconds, "training top-1": accuracy}


def augment(images: Tensor, generator: torch.Generator) -> Tensor:
    """Each image shifted by up to four pixels, and half of them mirrored."""
    with_border = F.pad(images, (4, 4, 4, 4), mode="reflect")
    top, left = torch.randint(0, 9, (2, len(images)), generator=generator)
    rows, columns = top[:, None] + torch.arange(32), left[:, None] + torch.arange(32)
    columns = torch.where(torch.rand(len(images), 1, generator=generator) < 0.5, columns.flip(1), columns)
    number = torch.arange(len(images))[:, None, None]
    return with_border.permute(0, 2, 3, 1)[number, rows[:, :, None], columns[:, None]].permute(0, 3, 1, 2).contiguous()


def transfer_rows(data: Path, folder: Path) -> list[dict[str, Any]]:
    """Transfer to four sets: a row for each frozen network on each set."""
    paths = {
        "cifar10": ("cifar10-jpg.tar.gz#train", "cifar10-jpg.tar.gz#test"),
        "mnist": ("mnist.npz#train", "mnist.npz#test"),
        "tiny-imagenet-50": ("tiny-imagenet-50.tar.gz#train", "tiny-imagenet-50.tar.gz#val"),
    }
    sets = [TransferSet("flowers5", f"{data}/flowers5-128.tar.gz")]
    for name, (train, test) in paths.items():
        parts = zip((train, test), (5000, 2500), ("train", "test"), strict=True)
        cuts = {
            part: write_small_images(open_source(f"{data}/{path}"), count, folder / f"{name}-{part}.npz")
            for path, count, part in parts
        }
        sets.append(TransferSet(name, cuts["train"], cuts["test"]))
    work = Work("cpu", num_workers=1, cache=folder / "cache", progress=PlainProgress())
    table = transfer(folder / "run", sets, KNN(20, 0.1), baselines=True, work=work)
    print(table.markdown(), flush=True)
    return [{"part": "transfer", "protocol": table.protocol, **asdict(row)} for row in table.rows]


def write_small_images(source: Source, images: int, path: Path) -> str:
    """The first images of each class as 32-pixel arrays (64-pixel ones averaged 2 by 2), written to a file."""
    label, per_class = labels_of(source), images // len(source.classes)
    numbers = torch.cat([(label == n).nonzero()[:per_class, 0] for n in range(len(source.classes))])
    originals = [source.image(int(number)) for number in numbers]
    smaller = [F.interpolate(image[None].float(), (32, 32), mode="area")[0].round().byte() for image in originals]
    pixels = torch.stack(smaller).permute(0, 2, 3, 1).numpy()
    np.savez(path, images=pixels, labels=label[numbers].numpy())
    return str(path)


def segmentation_rows(name: str, data: Path, folder: Path, seeds: list[int]) -> list[dict[str, Any]]:
    """Segmentation with the trained network, an untrained one and raw pixels, for each seed."""
    rows = []
    trained_encoder = load(folder / "run")
    train, test = SCENES[name](data, folder)
    for seed in seeds:
        encoders: list[FrozenEncoder] = [trained_encoder, random_encoder(trained_encoder.run, seed)]
        encoders += [raw_pixels(trained_encoder.run)]
        for encoder in encoders:
            start = time.process_time()
            protocol = Segmentation(size=96, width=32, epochs=15, seed=seed)
            outcome = protocol(encoder, train, test, Work("cpu", num_workers=1, cache=folder / "cache"))
            row = {"part": f"segmentation, {name}", "encoder": encoder.name, "seed": seed, **outcome.measures}
            rows.append({**row, "IoU": outcome.details["IoU"], "seconds of one core": time.process_time() - start})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def mosaics(data: Path, folder: Path) -> tuple[MaskedImages, MaskedImages]:
    """Nine CIFAR-10 images of 32 pixels side by side; every pixel has the class of its image."""
    chance = np.random.default_rng(0)
    for part, count in (("train", 100), ("test", 60)):
        source = open_source(f"{data}/cifar10-jpg.tar.gz#{part}")
        labels = labels_of(source).numpy()
        for number in range(count):
            canvas, mask = np.zeros((96, 96, 3), np.uint8), np.zeros((96, 96), np.uint8)
            for tile in range(9):
                window = np.s_[32 * (tile // 3) : 32 * (tile // 3) + 32, 32 * (tile % 3) : 32 * (tile % 3) + 32]
                at = int(chance.integers(len(source)))
                canvas[window], mask[window] = source.image(at).permute(1, 2, 0).numpy(), labels[at]
            save_scene(folder / f"mosaics-{part}", str(number), Image.fromarray(canvas), mask)
    return open_scenes(folder / "mosaics-train", source.classes), open_scenes(folder / "mosaics-test", source.classes)


def coco_scenes(data: Path, folder: Path) -> tuple[MaskedImages, MaskedImages]:
    """Photographs with the group of each pixel's object."""
    parts = [("tiny-coco-100", "tiny-coco", "train2017", "train"), ("tiny-coco-100", "tiny-coco", "val2017", "test")]
    parts.append(("coco-train-100", "coco-train-100", "train2017", "train"))
    for archive, top, split, part in parts:
        with tarfile.open(data / f"{archive}.tar.gz") as tar:
            content = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
            document = json.loads(bytes_of(content[f"{top}/annotations/instances_{split}.json"]))
            group = {one["id"]: group_of(one["supercategory"]) for one in document["categories"]}
            for image in document["images"]:
                mask = np.zeros((image["height"], image["width"]), np.uint8)
                annotations = [one for one in document["annotations"] if one["image_id"] == image["id"]]
                for one in sorted(annotations, key=lambda one: -one["area"]):  # small things lie in front
                    shape = region(one["segmentation"], *mask.shape)
                    mask[shape] = 255 if one.get("iscrowd") else group[one["category_id"]]
                photograph = Image.open(io.BytesIO(bytes_of(content[f"{top}/{split}/{image['file_name']}"]))).convert(
                    "RGB"
                )
                # At half the size, since a PNG of the full size takes a second to write.
                smaller = Image.fromarray(mask).resize(
                    (mask.shape[1] // 2, mask.shape[0] // 2), Image.Resampling.NEAREST
                )
                photograph = photograph.resize(smaller.size, Image.Resampling.BOX)
                save_scene(
                    folder / f"coco-{part}", image["file_name"].removesuffix(".jpg"), photograph, np.array(smaller)
                )
    return open_scenes(folder / "coco-train", GROUPS), open_scenes(folder / "coco-test", GROUPS)


def group_of(category: str) -> int:
    """The class, one of `GROUPS`, of a supercategory of COCO."""
    return GROUPS.index(category) if category in GROUPS else GROUPS.index("thing")


def region(shape: Any, height: int, width: int) -> np.ndarray:
    """The mask of an object, from polygons or from run lengths by column."""
    if isinstance(shape, dict):
        runs = shape["counts"]
        return np.repeat(np.arange(len(runs)) % 2, runs).reshape(width, height).T.astype(bool)
    mask = Image.new("1", (width, height))
    for polygon in shape:
        ImageDraw.Draw(mask).polygon(polygon, fill=1)
    return np.array(mask)


def bytes_of(file: Any) -> bytes:
    """The bytes of a member of an archive."""
    return file.read()


def save_scene(folder: Path, name: str, image: Image.Image, mask: np.ndarray) -> None:
    """An image and its mask, as PNGs."""
    for kind, picture in (("images", image), ("masks", Image.fromarray(mask))):
        (folder / kind).mkdir(parents=True, exist_ok=True)
        picture.save(folder / kind / f"{name}.png")


def open_scenes(folder: Path, names: tuple[str, ...]) -> MaskedImages:
    """The images and masks in a folder."""
    return open_masked(f"{folder / 'images'}#{folder / 'masks'}", names)


SCENES = {"mosaics": mosaics, "COCO": coco_scenes}


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
