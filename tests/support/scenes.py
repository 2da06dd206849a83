"""Small images with a mask each, and networks and settings that learn them in seconds."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from PIL import Image
from tiny import TinyMaps, tiny_run

from vantage.encoders.backbones.resnet import ResNet
from vantage.encoders.encoder import Encoder
from vantage.encoders.heads import LinearHead
from vantage.encoders.roles import Shared
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation

RUN = replace(tiny_run(), encoders=Shared(Encoder(ResNet(18, small=True), LinearHead(8))))


SMALL = replace(tiny_run(), encoders=Shared(Encoder(TinyMaps(), LinearHead(8))))


QUICK = Segmentation(size=16, width=8, epochs=2, batch_size=4)


def write_scenes(folder: Path, count: int, size: int = 24, seed: int = 0, classes: int = 3) -> str:
    """Rectangles on a background, with a color for each class; the border is ignored."""
    chance = np.random.default_rng(seed)
    colors = np.array([[60, 60, 60], [200, 60, 60], [60, 200, 60], [60, 60, 220]])
    for kind in ("images", "masks"):
        (folder / kind / "a").mkdir(parents=True)
    for number in range(count):
        mask = np.zeros((size, size + 4), np.uint8)
        top, edge = chance.integers(2, size // 2, 2)
        mask[top : top + size // 2, edge : edge + size // 2] = 1 + number % (classes - 1)
        picture = (colors[mask] + chance.normal(0, 20, (*mask.shape, 3))).clip(0, 255).astype(np.uint8)
        mask[0] = 255
        Image.fromarray(picture).save(folder / "images" / "a" / f"{number}.jpg", quality=95)
        Image.fromarray(mask).save(folder / "masks" / "a" / f"{number}.png")
    return f"{folder / 'images'}#{folder / 'masks'}"
