"""Small stocks of digits and backgrounds, and sources of them, for the tests of moving digits."""

import numpy as np
import torch

from vantage.data.sources.arrays import Arrays
from vantage.studies.moving_mnist import ImageSet


def small_stock(images: int, channels: int, side: int, classes: int = 10, seed: int = 0) -> ImageSet:
    """Random pixels; labels cycle through the classes."""
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (images, channels, side, side), generator=generator, dtype=torch.uint8)
    return ImageSet(pixels, torch.arange(images) % classes, tuple(map(str, range(classes))))


def bars(images: int, classes: int = 10, seed: int = 0) -> "np.ndarray":
    """Digits that can be told apart at any position: light bars, whose direction and width show the class."""
    generator = np.random.default_rng(seed)
    row, column = np.mgrid[0:28, 0:28]
    pixels = np.zeros((images, 28, 28), dtype=np.uint8)
    for number in range(images):
        width = 3 + number % classes // 2
        bar = (row if number % classes % 2 else column) // width % 2 == 0
        pixels[number] = bar * generator.integers(200, 256)
    return pixels


def tints(images: int, classes: int = 10, side: int = 64, seed: int = 1) -> "np.ndarray":
    """Backgrounds of one color per class, with noise."""
    generator = np.random.default_rng(seed)
    color = np.random.default_rng(0).integers(0, 120, (classes, 3))[np.arange(images) % classes]
    noise = generator.integers(0, 40, (images, side, side, 3))
    return (color[:, None, None] + noise).astype(np.uint8)


def source(pixels: "np.ndarray", classes: int = 10, labeled: bool = True) -> Arrays:
    """A source whose labels cycle through the classes."""
    return Arrays(pixels, np.arange(len(pixels)) % classes if labeled else None, "made for the test")
