"""Equal minutes on the same machine and the same evaluation: Vantage's `--minutes`, lightly, labels, and no training.

    python benchmarks/race.py --data ../shared/data --work /tmp/race --minutes 5 15 --seeds 0 1 2

Each contender gets the training images of a set and a number of minutes, from its start to the end of its training.
Reading, compiling and planning count; importing libraries does not. It returns a network and the image size that the
network takes. scikit-learn then evaluates the features of all training and test images: nearest neighbors (k = 20,
cosine, weighted by similarity) and logistic regression on standardized features, with its default strength. The test
split is used only there.

* vantage: `vantage pretrain --data … --minutes …`, nothing else; "vantage jcl" and so on: the same with that recipe
* lightly SimCLR and MoCo: the code of lightly's documentation for these methods (ResNet-18, batch 256, SGD at 0.06,
  float32), views as large as the images
* lightly-train: `lightly_train.pretrain` with its method "simclr" and its defaults (ResNet-18, batch 128), on views as
  large as the images, stopped by its trainer's clock. Its default method distills weights that it downloads
* lightly SimCLR, our network: lightly SimCLR with the network, view size and precision that Vantage's plan chose
* labels: that network trained on the labels with AdamW, random crops and flips
* random encoder: that network without training; raw pixels

Each cell runs in its own process, and finished cells are kept in --work; a second call computes the missing ones. Both
wall time and processor time are recorded: on a busy machine they differ. Needs the extra `bench`, and the package
lightly-train for the contender of that name, which is run only if `--contenders` names it.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from timing import earlier_rows, summary, write_results
from torch import Tensor, nn

SETS = {
    "cifar10-jpg": ("cifar10-jpg.tar.gz#train", "cifar10-jpg.tar.gz#test", 32),
    "tiny-imagenet-50": ("tiny-imagenet-50.tar.gz#train", "tiny-imagenet-50.tar.gz#val", 64),
    "flowers5": ("flowers5-128.tar.gz", "", 128),
    "mnist": ("mnist.npz#train", "mnist.npz#test", 28),
}
CONTENDERS = (
    "vantage",  # first: others take its network
    "random encoder",
    "raw pixels",
    "lightly SimCLR, our network",
    "lightly SimCLR",
    "lightly MoCo",
    "labels",
)
LIGHTLY_TRAIN = "lightly-train"
METHODS = ("moco_v2", "jcl", "ring_moco", "interclr", "interclr_moco", "infomin", "everything")
"""Recipes that may be given the minutes too, as contenders "vantage jcl" and so on, if --contenders names them."""
UNTRAINED = ("raw pixels", "random encoder")


@dataclass(frozen=True)
class Entrant:
    """What a contender returns."""

    network: nn.Module
    """Maps images in [0, 1] to features; it normalizes the images itself."""

    size: int
    """Side of the images that it takes, in pixels."""

    images: int
    """Training images that it saw, each counted once per step, however many views it has."""

    note: str
    """Network, batch and epochs in words."""


def main() -> None:
    """Run the missing cells, and write the results file after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for sets, runs and cells")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument(
        "--contenders",
        nargs="+",
        choices=[*CONTENDERS, LIGHTLY_TRAIN, *(f"vantage {name}" for name in METHODS)],
        default=list(CONTENDERS),
    )
    parser.add_argument("--minutes", nargs="+", type=float, default=[5.0, 15.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--cell", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument(
        "--collect", action="store_true", help="only write the results file from the cells that are done"
    )
    parser.add_argument("--results", default="race", help="name of the results file: one for each kind of processor")
    options = parser.parse_args()
    if options.cell:
        name, contender, minutes, seed = options.cell
        run_cell(options.data, options.work, name, contender, float(minutes), int(seed))
        return
    cells = options.work / "cells"
    cells.mkdir(parents=True, exist_ok=True)
    for name, contender, minutes, seed in () if options.collect else order(options):
        if not cell_path(options.work, name, contender, minutes, seed).exists():
            words = ["--data", str(options.data), "--work", str(options.work)]
            words += ["--cell", name, contender, str(minutes), str(seed)]
            subprocess.run([sys.executable, __file__, *words], check=True)
            collect(cells, options.results)
    collect(cells, options.results)


def order(options: argparse.Namespace) -> Iterator[tuple[str, str, float, int]]:
    """Every cell, seed by seed, so that an unfinished table is fair. An untrained network is evaluated once per seed,
    raw pixels only once."""
    for minutes in options.minutes:
        for seed in options.seeds:
            for name in options.sets:
                for contender in options.contenders:
                    if contender == "raw pixels" and seed != options.seeds[0]:
                        continue
                    yield name, contender, 0.0 if contender in UNTRAINED else minutes, seed


def cell_path(work: Path, name: str, contender: str, minutes: float, seed: int) -> Path:
    """The file of a cell."""
    return work / "cells" / f"{name} {contender} {minutes:g} {seed}.json"


def collect(cells: Path, name: str) -> None:
    """Write a results file: every cell, with those that the file has from elsewhere, then means and deviations over
    seeds."""
    rows = [json.loads(path.read_text()) for path in sorted(cells.glob("*.json"))]
    rows += earlier_rows(name, rows, "set", "recipe", "minutes", "seed")
    rows.sort(key=lambda row: (row["set"], row["recipe"], row["minutes"], row["seed"]))
    write_results(name, [*rows, *summary(rows, "set", "recipe", "minutes")])


def run_cell(data: Path, work: Path, name: str, contender: str, minutes: float, seed: int) -> None:
    """Train one contender, evaluate it, and write its row."""
    train, test = images_of(data, work, name)
    torch.manual_seed(seed)
    recipe = contender.removeprefix("vantage").split()
    folder = (
        work
        / ("-".join(["runs", *recipe]) if contender.startswith("vantage") else "runs")
        / f"{name}-{minutes:g}-{seed}"
    )
    if contender == LIGHTLY_TRAIN:
        write_files(train, work)  # it reads a folder of files, which is no part of its training
    wall, processor = time.monotonic(), time.process_time()
    contend = partial(with_vantage, recipe) if contender.startswith("vantage") else ENTRANTS[contender]
    entrant = contend(train, work, folder, minutes, seed)
    seconds = {"wall seconds": time.monotonic() - wall, "processor seconds": time.process_time() - processor}
    row: dict[str, Any] = {"set": name, "recipe": contender, "minutes": minutes, "seed": seed}
    row |= {key: round(value, 1) for key, value in seconds.items()}
    row |= {"images seen": entrant.images, "network": entrant.note, "threads": torch.get_num_threads()}
    row |= accuracies(entrant, train, test)
    cell_path(work, name, contender, minutes, seed).write_text(json.dumps(row))
    print(row, flush=True)


# The sets


@dataclass(frozen=True)
class Images:
    """The decoded images of one part of a set."""

    pixels: Tensor
    """n × 3 × h × w, uint8."""

    label: Tensor
    """n labels."""

    path: str
    """The same images for `--data`."""

    side: int
    """Side of the images, in pixels."""

    def at(self, size: int, rows: slice) -> Tensor:
        """Images in [0, 1] at another size, smaller ones averaged."""
        images = self.pixels[rows].float() / 255
        return (
            images
            if size == self.side
            else F.interpolate(images, (size, size), mode="bilinear", antialias=True, align_corners=False)
        )


def images_of(data: Path, work: Path, name: str) -> tuple[Images, Images]:
    """Training and test images as npz files, so that all contenders read the same. The flowers have no split, so every
    fifth image of each class is for testing."""
    from vantage.data import labels_of, open_source
    from vantage.data.resident import decode_all

    train, test, side = SETS[name]
    paths = [work / f"{name}-{part}.npz" for part in ("train", "test")]
    if not all(path.exists() for path in paths):
        sources = [open_source(f"{data}/{path}") for path in (train, test) if path]
        parts = [(decode_all(source, side), labels_of(source)) for source in sources]
        if len(parts) == 1:
            (pixels, label) = parts[0]
            number = torch.stack([(label[: i + 1] == label[i]).sum() for i in range(len(label))])
            parts = [(pixels[rows], label[rows]) for rows in (number % 5 != 0, number % 5 == 0)]
        for path, (pixels, label) in zip(paths, parts, strict=True):
            np.savez(path, images=pixels.permute(0, 2, 3, 1).numpy(), labels=label.numpy())
    return tuple(read_images(path, side) for path in paths)  # type: ignore[return-value]


def read_images(path: Path, side: int) -> Images:
    """A part of a set."""
    arrays = np.load(path)
    pixels = torch.from_numpy(arrays["images"]).permute(0, 3, 1, 2).contiguous()
    return Images(pixels, torch.from_numpy(arrays["labels"]).long(), str(path), side)


# The evaluation


@torch.no_grad()
def features(entrant: Entrant, images: Images) -> np.ndarray:
    """n × d features in float32."""
    entrant.network.eval()
    batches = (images.at(entrant.size, slice(start, start + 500)) for start in range(0, len(images.pixels), 500))
    return torch.cat([entrant.network(batch).float().flatten(1) for batch in batches]).numpy()


def accuracies(entrant: Entrant, train: Images, test: Images) -> dict[str, float]:
    """Accuracy in percent on the test images by neighbors and by logistic regression."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    vector, test_vector = features(entrant, train), features(entrant, test)
    label, test_label = train.label.numpy(), test.label.numpy()
    votes = KNeighborsClassifier(20, metric="cosine", weights=lambda distance: 1 - distance)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=300, tol=1e-3))
    accuracy = {}
    for name, judge in (("knn", votes), ("linear", linear)):
        accuracy[f"{name}: top-1"] = round(100 * float(judge.fit(vector, label).score(test_vector, test_label)), 2)
    return accuracy


# The contenders


def raw_pixels(train: Images, *_: Any) -> Entrant:
    """The raw pixels, at a side of at most 32."""
    return Entrant(nn.Flatten(), min(train.side, 32), 0, "-")


def plan_of(folder: Path) -> Any:
    """The run that Vantage planned for a set, which must already be trained."""
    from vantage.training.folder.settings import read as settings

    return settings(folder)


def random_network(train: Images, work: Path, folder: Path, minutes: float, seed: int) -> Entrant:
    """Our network, untrained. The plan is the one that Vantage made for the fewest minutes on this set."""
    from vantage.frozen.encoder import random_encoder

    runs = sorted(
        (work / "runs").glob(f"{folder.name.rsplit('-', 2)[0]}-*-{seed}"),
        key=lambda path: float(path.name.split("-")[-2]),
    )
    return frozen(random_encoder(plan_of(runs[0]), seed), 0)


def with_vantage(recipe: list[str], train: Images, work: Path, folder: Path, minutes: float, seed: int) -> Entrant:
    """The command of the README, in this process so that its time is counted."""
    from vantage.cli import main as vantage
    from vantage.frozen.encoder import load

    words = [
        "pretrain",
        *recipe,
        "--data",
        train.path,
        "--minutes",
        f"{minutes:g}",
        "--seed",
        str(seed),
        "--out",
        str(folder),
    ]
    if code := vantage(words):
        raise SystemExit(code)
    run = plan_of(folder)
    share = run.data.hold_out
    return frozen(load(folder), round(run.epochs * min(len(train.pixels) * (1 - share), run.data.max_images or np.inf)))


def frozen(encoder: Any, images: int) -> Entrant:
    """A frozen encoder of Vantage as an entrant: its normalization becomes a part of the network."""
    run, view = encoder.run, encoder.view
    size = view.size
    network = nn.Sequential(Finish(view), encoder.backbone)
    backbone = next(str(part) for part in backbones(run))
    return Entrant(
        network, size, images, f"{backbone}, {run.recipe}, views {size}, batch {run.batch_size}, {run.epochs} epochs"
    )


class Finish(nn.Module):
    """A view's normalization, from images in [0, 1]."""

    def __init__(self, view: Any) -> None:
        super().__init__()
        self.view = view

    def forward(self, images: Tensor) -> Tensor:
        """Normalized images."""
        return self.view.finish((images * 255).round().to(torch.uint8))


def backbones(run: Any) -> Iterator[Any]:
    """Every backbone of a run."""
    from vantage.composition.fitting import parts_of
    from vantage.encoders import Encoder

    yield from (part.backbone for part in parts_of(run.encoders) if isinstance(part, Encoder))


def with_simclr(train: Images, work: Path, folder: Path, minutes: float, seed: int) -> Entrant:
    """SimCLR as lightly documents it."""
    return lightly_simclr(train, resnet18(), 512, train.side, nullcontext(), minutes, "ResNet-18")


def with_simclr_on_ours(train: Images, work: Path, folder: Path, minutes: float, seed: int) -> Entrant:
    """The same with the network, view size and precision of Vantage's plan for these minutes."""
    run = plan_of(folder)
    backbone = next(backbones(run))
    half = torch.autocast("cpu", torch.bfloat16) if "bf16" in str(run.hardware.precision) else nullcontext()
    network = backbone.build().to(memory_format=torch.channels_last)
    size = random_view_size(run)
    return lightly_simclr(train, network, network.width, size, half, minutes, str(backbone))


def random_view_size(run: Any) -> int:
    """Side of a run's views in pixels."""
    from vantage.frozen.encoder import random_encoder

    return random_encoder(run, 0).view.size


def resnet18() -> nn.Module:
    """The backbone of lightly's examples."""
    from torchvision.models import resnet18 as make

    return nn.Sequential(*list(make().children())[:-1], nn.Flatten())


def loader(train: Images, transform: Any) -> Any:
    """A loader of lightly's views of the images: without workers on one core, otherwise with one for each core."""
    from PIL import Image
    from torch.utils.data import DataLoader, Dataset

    class DecodedImages(Dataset):
        def __len__(self) -> int:
            return len(train.pixels)

        def __getitem__(self, number: int) -> Any:
            return transform(Image.fromarray(train.pixels[number].permute(1, 2, 0).numpy()))

    cores = torch.get_num_threads()
    return DataLoader(
        DecodedImages(), batch_size=256, shuffle=True, drop_last=True, num_workers=cores if cores > 1 else 0
    )


def batches_until(loader: Any, minutes: float) -> Iterator[tuple[int, Any]]:
    """Batches with the number of the pass, pass after pass, until the time is over."""
    end, epoch = time.monotonic() + 60 * minutes, 0
    while True:
        for batch in loader:
            if time.monotonic() > end:
                return
            yield epoch, batch
        epoch += 1


def lightly_simclr(
    train: Images, backbone: nn.Module, width: int, size: int, precision: Any, minutes: float, note: str
) -> Entrant:
    """lightly's example of SimCLR."""
    from lightly.loss import NTXentLoss
    from lightly.models.modules import SimCLRProjectionHead
    from lightly.transforms import SimCLRTransform

    head = SimCLRProjectionHead(width, width, 128)
    criterion = NTXentLoss()
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.06)
    count, epoch = 0, 0
    for epoch, (one, two) in batches_until(loader(train, SimCLRTransform(input_size=size)), minutes):  # noqa: B007
        with precision:
            loss = criterion(*(head(backbone(view).flatten(1)).float() for view in (one, two)))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        count += len(one)
    note = f"{note}, SimCLR, views {size}, batch 256, {epoch + 1} epochs begun"
    return Entrant(WithNormalization(backbone), size, count, note)


def with_moco(train: Images, work: Path, folder: Path, minutes: float, seed: int) -> Entrant:
    """MoCo as lightly documents it."""
    import copy

    from lightly.loss import NTXentLoss
    from lightly.models.modules import MoCoProjectionHead
    from lightly.models.utils import deactivate_requires_grad, update_momentum
    from lightly.transforms.moco_transform import MoCoV2Transform
    from lightly.utils.scheduler import cosine_schedule

    backbone, head = resnet18(), MoCoProjectionHead(512, 512, 128)
    slow, slow_head = copy.deepcopy(backbone), copy.deepcopy(head)
    deactivate_requires_grad(slow)
    deactivate_requires_grad(slow_head)
    criterion = NTXentLoss(memory_bank_size=(4096, 128))
    optimizer = torch.optim.SGD([*backbone.parameters(), *head.parameters()], lr=0.06)
    count = epochs = 0
    for epochs, (one, two) in batches_until(loader(train, MoCoV2Transform(input_size=train.side)), minutes):
        momentum = cosine_schedule(min(epochs, 10), 10, 0.996, 1)  # as in the example, which has ten epochs
        update_momentum(backbone, slow, m=momentum)
        update_momentum(head, slow_head, m=momentum)
        query = head(backbone(one).flatten(1))
        with torch.no_grad():
            key = slow_head(slow(two).flatten(1))
        criterion(query, key).backward()
        optimizer.step()
        optimizer.zero_grad()
        count += len(one)
    note = f"ResNet-18, MoCo, views {train.side}, batch 256, {epochs + 1} epochs begun"
    return Entrant(WithNormalization(backbone), train.side, count, note)


def with_lightly_train(train: Images, work: Path, folder: Path, minutes: float, seed: int) -> Entrant:
    """SimCLR as lightly-train offers it, in this process, with the number of epochs that it chooses."""
    import lightly_train
    from torchvision.models import resnet18 as make

    network, batch, views = make(), 128, 0

    def count(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        nonlocal views
        views += len(inputs[0])

    hook = network.conv1.register_forward_pre_hook(count)
    lightly_train.pretrain(
        out=str(work / "lightly-train" / folder.name),
        data=str(write_files(train, work)),
        model=network,
        method="simclr",
        batch_size=batch,
        num_workers=torch.get_num_threads() if torch.get_num_threads() > 1 else 0,
        accelerator="cpu",
        seed=seed,
        transform_args={"image_size": (train.side, train.side)},
        trainer_args={"max_time": {"seconds": round(60 * minutes)}},
        loggers={"tensorboard": None},
        callbacks={"model_checkpoint": None},
        overwrite=True,
    )
    hook.remove()
    backbone = nn.Sequential(*list(network.children())[:-1], nn.Flatten())
    note = f"ResNet-18, SimCLR, views {train.side}, batch {batch}"
    return Entrant(WithNormalization(backbone), train.side, views // 2, note)


def write_files(images: Images, work: Path) -> Path:
    """The images as PNG files in a folder, which is written once and gets its final name when it is complete."""
    from PIL import Image

    folder = work / f"{Path(images.path).stem}-files"
    if folder.exists():
        return folder
    part = folder.with_suffix(".part")
    for number, pixels in enumerate(images.pixels.permute(0, 2, 3, 1).numpy()):
        path = part / f"{number // 1000:03}" / f"{number:06}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path)
    return part.rename(folder)


class WithNormalization(nn.Module):
    """A network of lightly, preceded by the normalization of lightly's views."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Features."""
        from torchvision.transforms.functional import normalize

        return self.network(normalize(images, [0.485, 0.456, 0.406], [0.229, 0.224, 0.225])).flatten(1)


def with_labels(train: Images, work: Path, folder: Path, minutes: float, seed: int) -> Entrant:
    """Our network and image size, trained on labels; the learning rate falls to 0 over the minutes."""
    run = plan_of(folder)
    backbone, size = next(backbones(run)), random_view_size(run)
    network = backbone.build().to(memory_format=torch.channels_last)
    head = nn.Linear(network.width, int(train.label.max()) + 1)
    optimizer = torch.optim.AdamW([*network.parameters(), *head.parameters()], 2e-3, weight_decay=0.05)
    half = torch.autocast("cpu", torch.bfloat16) if "bf16" in str(run.hardware.precision) else nullcontext()
    start, seconds, count = time.monotonic(), 60 * minutes, 0
    small_images = replace(
        train,
        pixels=torch.cat(
            [(train.at(size, slice(i, i + 500)) * 255).round().byte() for i in range(0, len(train.pixels), 500)]
        ),
        side=size,
    )
    while (share := (time.monotonic() - start) / seconds) < 1:
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * min(share / 0.1, (1 - share) / 0.9)
        rows = torch.randint(len(train.label), (256,))
        with half:
            score = head(network(augment(small_images.pixels[rows].float() / 255)))
        F.cross_entropy(score.float(), train.label[rows]).backward()
        optimizer.step()
        optimizer.zero_grad()
        count += len(rows)
    return Entrant(WithCentering(network), size, count, f"{backbone}, labels, {size} px, batch 256")


def augment(images: Tensor) -> Tensor:
    """Images normalized around 0, each mirrored at random and all shifted by the same few pixels."""
    margin = max(1, images.shape[-1] // 8)
    top, left = torch.randint(0, 2 * margin + 1, (2,)).tolist()
    with_border = F.pad(images, (margin,) * 4, mode="reflect")
    crop = with_border[:, :, top : top + images.shape[-2], left : left + images.shape[-1]]
    images = torch.where(torch.rand(len(images), 1, 1, 1) < 0.5, crop.flip(3), crop)
    return ((images - 0.45) / 0.25).contiguous(memory_format=torch.channels_last)


class WithCentering(nn.Module):
    """A network, preceded by the normalization of `augment`."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Features."""
        return self.network((images - 0.45) / 0.25).flatten(1)


ENTRANTS: dict[str, Callable[..., Entrant]] = {
    "raw pixels": raw_pixels,
    "random encoder": random_network,
    "lightly SimCLR": with_simclr,
    "lightly SimCLR, our network": with_simclr_on_ours,
    "lightly MoCo": with_moco,
    LIGHTLY_TRAIN: with_lightly_train,
    "labels": with_labels,
}
"""How each contender is trained."""


if __name__ == "__main__":
    main()
