"""Real photographs with planted copies, wrong labels and strangers, all of them known, for `find.py`."""

import io
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance

from vantage.data import open_source
from vantage.data.sources.arrays import Arrays

CHANGES = ("recompressed", "mirrored", "cropped", "recolored")
"""How a copy is changed; every copy is then written as JPEG."""


@dataclass(frozen=True)
class PlantedImages:
    """A set with something planted in it."""

    source: Arrays
    """The images and, if there are any, labels."""
    truth: np.ndarray
    """Copies: for each image the number of its original, or −1. Else: whether an image was planted or its label is
    wrong."""
    change: np.ndarray
    """Copies: for each image the number of its change in `CHANGES`, or −1; else empty."""


def pixels_of(path: Path | str, size: int, limit: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """All images of a set, squeezed to a square, and their labels. Identical pictures are included only once, so that
    every exact copy was planted. With `limit`, at most that many, spread evenly."""
    source = open_source(path)
    numbers = range(len(source)) if not limit else np.linspace(0, len(source) - 1, limit).astype(int)
    first_number: dict[bytes, int] = {}
    images, labels = [], []
    for number in map(int, numbers):
        image = Image.fromarray(source.image(number).permute(1, 2, 0).numpy())
        if image.size != (size, size):
            image = image.resize((size, size), Image.Resampling.BICUBIC)
        array = np.asarray(image)
        if first_number.setdefault(array.tobytes(), number) == number:
            images.append(array)
            labels.append(-1 if source.label(number) is None else source.label(number))
    return np.stack(images), np.array(labels)


def with_copies(images: np.ndarray, copies: int, seed: int = 0) -> PlantedImages:
    """The images and changed copies of some of them, equally many of each change."""
    chance = np.random.default_rng(seed)
    originals = chance.choice(len(images), copies, replace=False)
    changes = np.arange(copies) % len(CHANGES)
    changed_images = [
        copy_of(images[original], CHANGES[change], chance) for original, change in zip(originals, changes, strict=True)
    ]
    none = np.full(len(images), -1)
    source = Arrays(np.concatenate([images, np.stack(changed_images)]), None, "copies")
    return PlantedImages(source, np.concatenate([none, originals]), np.concatenate([none, changes]))


def with_wrong_labels(images: np.ndarray, label: np.ndarray, share: float, seed: int = 0) -> PlantedImages:
    """The images, a share of their labels replaced by another class."""
    chance = np.random.default_rng(seed)
    wrong = np.zeros(len(label), bool)
    wrong[chance.choice(len(label), round(share * len(label)), replace=False)] = True
    classes = label.max() + 1
    other_labels = (label + chance.integers(1, classes, len(label))) % classes
    return PlantedImages(Arrays(images, np.where(wrong, other_labels, label), "labels"), wrong, np.array([]))


def with_strangers(images: np.ndarray, strangers: np.ndarray) -> PlantedImages:
    """The images, followed by strangers."""
    truth = np.arange(len(images) + len(strangers)) >= len(images)
    return PlantedImages(Arrays(np.concatenate([images, strangers]), None, "strangers"), truth, np.array([]))


def copy_of(image: np.ndarray, change: str, chance: np.random.Generator) -> np.ndarray:
    """A changed copy: JPEG of quality 30; mirrored; a crop of four fifths of each side; or other brightness, color and
    warmth. The last three are JPEG of quality 85."""
    picture = Image.fromarray(image)
    side = picture.width
    match change:
        case "mirrored":
            picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        case "cropped":
            left, top = chance.integers(0, side - side * 4 // 5 + 1, 2).tolist()
            box = (left, top, left + side * 4 // 5, top + side * 4 // 5)
            picture = picture.crop(box).resize((side, side), Image.Resampling.BICUBIC)
        case "recolored":
            picture = ImageEnhance.Brightness(picture).enhance(float(chance.choice([0.75, 1.3])))
            picture = ImageEnhance.Color(picture).enhance(float(chance.choice([0.5, 1.5])))
            warm = np.asarray(picture) * chance.choice([[1.1, 1, 0.85], [0.9, 1, 1.15]])
            picture = Image.fromarray(warm.clip(0, 255).astype(np.uint8))
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=30 if change == "recompressed" else 85)
    return np.asarray(Image.open(file).convert("RGB"))


def dhash(images: np.ndarray) -> np.ndarray:
    """The difference hash of each image, which is scaled to 9 × 8 gray pixels: 64 bits, each of which says whether a
    pixel is darker than its right neighbor. Bits are ±1/8, so that a cosine is 1 − (number of different bits) / 32."""
    rows = []
    for image in images:
        small = Image.fromarray(image).convert("L").resize((9, 8), Image.Resampling.BILINEAR)
        gray = np.asarray(small, dtype=np.int16)
        rows.append(np.where(gray[:, 1:] > gray[:, :-1], 1.0, -1.0).flatten() / 8)
    return np.array(rows, dtype=np.float32)
