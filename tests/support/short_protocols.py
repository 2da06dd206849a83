"""Every protocol of `vantage evaluate` made short, with a random network and images that suit it: for tests, and for
`benchmarks/processes.py`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from annotated import small_coco
from PIL import Image

from vantage.data import Arrays, Source, SourceSubset
from vantage.data.sources.masked import open_masked
from vantage.encoders import Convolutions, Encoder, LinearHead, PerView, ResNet, ResNet9, Shared
from vantage.evaluate import PROTOCOLS, Segmentation
from vantage.evaluate.protocols.detection import DETECTORS, Sizes, open_annotated
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.recipes import cmc, moco_v2

SHORT: dict[str, Any] = {
    **{"epochs": 6, "batch_size": 16, "shots": (1, 2), "samples": 1, "negatives": 4, "folds": 2, "fraction": 1.0},
    **{"k": 5, "learning_rates": (1.0, 3.0), "head_learning_rates": (0.1, 0.3)},
    **{"head_learning_rate": 0.1, "backbone_learning_rate": 0.01},
}
"""Short settings for the protocols that have these fields."""
MAPPED = ("linear-ring", "linear-multi", "linear-places", "segmentation")
"""Protocols that need feature maps."""
SEGMENTATION = Segmentation(size=16, width=8, epochs=2, batch_size=4)
DETECTION: dict[str, Any] = {
    **{"steps": 3, "batch_size": 4, "precise_batches": 1, "learning_rate": 0.001},
    "sizes": Sizes((32, 40), 32, 48, (8, 16, 24, 32, 48), regions=16, proposals=20),
}
"""A few steps of a detector."""


def labeled(**settings: Any) -> list[Any]:
    """Every protocol that takes one labeled set; `settings` replace some of `SHORT`."""
    settings = SHORT | settings
    return [kind(**{name: value for name, value in settings.items() if hasattr(kind, name)}) for kind in PROTOCOLS]


def detectors() -> list[Any]:
    """Every protocol that takes images with boxes."""
    return [kind(**DETECTION) for kind in DETECTORS]


def encoder_for(protocol: Any) -> FrozenEncoder:
    """A random network of the kind that the protocol reads."""
    run, head = moco_v2(32), LinearHead(8)
    if protocol.name == "linear-cmc":
        lightness, color = (Encoder(Convolutions((16, 32), channels), head) for channels in (1, 2))
        run = replace(cmc(32), encoders=PerView((lightness, color)))
    else:
        backbone = ResNet9(8) if protocol.name in MAPPED else Convolutions((16, 32))
        backbone = ResNet(18) if isinstance(protocol, DETECTORS) else backbone
        run = replace(run, encoders=Shared(Encoder(backbone, head)))
    torch.manual_seed(0)
    return random_encoder(run)


def sets_for(protocol: Any, folder: Path) -> tuple[Source, Source]:
    """Images to train on and to test on; those with masks or boxes are written into the folder."""
    if isinstance(protocol, DETECTORS):
        files = small_coco(folder, "train", 12), small_coco(folder, "val", 6, 1)
        return open_annotated(str(files[0])), open_annotated(str(files[1]))
    if isinstance(protocol, Segmentation):
        for kind, count in (("train", 11), ("test", 7)):
            scenes(folder / kind, count, count)
        train, test = (
            open_masked(f"{folder / kind / 'images'}#{folder / kind / 'masks'}") for kind in ("train", "test")
        )
        return train, test
    source = noise(90, 32)
    return SourceSubset(source, range(60)), SourceSubset(source, range(60, 90))


def noise(count: int, size: int) -> Arrays:
    """Colored noise of three classes."""
    chance, label = np.random.default_rng(0), np.arange(count) % 3
    color = chance.uniform(40, 215, (3, 1, 1, 3))[label]
    pixels = (color + chance.normal(0, 250, (count, size, size, 3))).clip(0, 255).astype(np.uint8)
    return Arrays(pixels, label, "noise")


def scenes(folder: Path, count: int, seed: int) -> None:
    """Squares on a background, and their masks."""
    chance = np.random.default_rng(seed)
    for kind in ("images", "masks"):
        (folder / kind).mkdir(parents=True)
    for number in range(count):
        mask = np.zeros((24, 24), np.uint8)
        top, left = chance.integers(1, 12, 2)
        mask[top : top + 12, left : left + 12] = 1 + number % 2
        picture = (60 + 70 * mask[..., None] + chance.normal(0, 20, (24, 24, 3))).clip(0, 255).astype(np.uint8)
        mask[0] = 255
        Image.fromarray(picture).save(folder / "images" / f"{number}.png")
        Image.fromarray(mask).save(folder / "masks" / f"{number}.png")
