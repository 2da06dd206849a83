"""Scenes whose categories must be recognized: small photographs of known classes on photographs of flowers.

A frozen backbone that was trained on such classes can tell them apart; an untrained one hardly can. The position and
the extent of things are easy for both. Everything is written in COCO's format, so it is read like any other data.
"""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image, ImageDraw

SIDE = 96  # of a scene, in pixels
COCO_POINTS = 17
ON_BOARDS = (0, 1, 6, 7)  # airplane, automobile, frog, horse
FIRST_POINT = 11  # hips and knees: COCO forgives 18 pixels here, and the middles of two photographs are 34 apart

Photographs = Mapping[int, np.ndarray]  # by class (n, 32, 32, 3)


def write_scenes(
    folder: Path, split: str, count: int, paint: Callable[..., list[dict[str, Any]]], photographs: Photographs,
    backgrounds: Sequence[Path], categories: list[dict[str, Any]], seed: int,
) -> Path:  # fmt: skip
    """A COCO file and its PNGs. No photograph is used in two scenes."""
    file = folder / "annotations" / f"instances_{split}.json"
    if file.exists():
        return file
    chance = np.random.default_rng(seed)
    unused_numbers = {label: list(chance.permutation(len(pixels))) for label, pixels in photographs.items()}
    images, annotations = [], []
    for parent in (folder / split, file.parent):
        parent.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        canvas = background(backgrounds[int(chance.integers(len(backgrounds)))], chance)
        for facts in paint(canvas, lambda label: photographs[label][unused_numbers[label].pop()], chance):
            annotations.append({"id": len(annotations) + 1, "image_id": number + 1, "iscrowd": 0, **facts})
        canvas.save(folder / split / f"{number}.png")
        images.append({"id": number + 1, "file_name": f"{number}.png", "height": SIDE, "width": SIDE})
    file.write_text(json.dumps({"images": images, "categories": categories, "annotations": annotations}))
    return file


def background(path: Path, chance: np.random.Generator) -> Image.Image:
    """A random part of a photograph of 128 pixels."""
    left, top = chance.integers(0, 128 - SIDE + 1, 2).tolist()
    return Image.open(path).convert("RGB").crop((left, top, left + SIDE, top + SIDE))


def things(canvas: Image.Image, take: Callable[[int], np.ndarray], chance: np.random.Generator) -> list[dict[str, Any]]:
    """Two or three photographs of any classes, cut to turned ellipses of 36 to 52 pixels that do not overlap."""
    objects: list[dict[str, Any]] = []
    for _ in range(int(chance.integers(2, 4))):
        for _ in range(50):
            side = int(chance.integers(36, 53))
            left, top = chance.integers(0, SIDE - side + 1, 2).tolist()
            corners = ellipse(left + side / 2, top + side / 2, side / 2, chance)
            x, y = np.array(corners).reshape(-1, 2).T
            box = [float(x.min()), float(y.min()), float(np.ptp(x)), float(np.ptp(y))]
            if not any(overlap(box, other["bbox"]) for other in objects):
                label = int(chance.integers(10))
                shape = Image.new("L", canvas.size)
                ImageDraw.Draw(shape).polygon(corners, fill=255)
                layer = Image.new("RGB", canvas.size)
                layer.paste(Image.fromarray(take(label)).resize((side, side), Image.Resampling.BICUBIC), (left, top))
                canvas.paste(layer, mask=shape)
                area = float(np.count_nonzero(np.array(shape)))
                objects.append({"bbox": box, "segmentation": [corners], "area": area, "category_id": label + 1})
                break
    return objects


def ellipse(x: float, y: float, radius: float, chance: np.random.Generator) -> list[float]:
    """Corners of an ellipse, .7 to 1 times as wide as long, turned by any angle."""
    turn, share = chance.uniform(0, math.pi), chance.uniform(0.7, 1.0)
    angle = np.linspace(0, 2 * math.pi, 32, endpoint=False)
    along, across = radius * np.cos(angle), share * radius * np.sin(angle)
    corners = np.stack((x + math.cos(turn) * along - math.sin(turn) * across,
                        y + math.sin(turn) * along + math.cos(turn) * across), 1)  # fmt: skip
    return corners.flatten().round(2).tolist()


def boards(canvas: Image.Image, take: Callable[[int], np.ndarray], chance: np.random.Generator) -> list[dict[str, Any]]:
    """A board of four photographs, one of each class of `ON_BOARDS`, in any order. A keypoint is the middle of the
    photograph of its class."""
    tile = int(chance.integers(34, 41))
    left, top = chance.integers(0, SIDE - 2 * tile + 1, 2).tolist()
    points = np.zeros((COCO_POINTS, 3))
    for position, number in enumerate(chance.permutation(len(ON_BOARDS)).tolist()):
        x, y = left + position % 2 * tile, top + position // 2 * tile
        photograph = Image.fromarray(take(ON_BOARDS[number]))
        canvas.paste(photograph.resize((tile, tile), Image.Resampling.BICUBIC), (x, y))
        points[FIRST_POINT + number] = (x + tile / 2, y + tile / 2, 2)
    facts = {"bbox": [left, top, 2 * tile, 2 * tile], "area": 4 * tile * tile, "category_id": 1}
    return [{**facts, "num_keypoints": len(ON_BOARDS), "keypoints": points.flatten().tolist()}]


def points_of(classes: Sequence[str]) -> list[str]:
    """Names of COCO's 17 keypoints, four of which boards have."""
    names = [f"none {number}" for number in range(COCO_POINTS)]
    names[FIRST_POINT : FIRST_POINT + len(ON_BOARDS)] = [classes[label] for label in ON_BOARDS]
    return names


def overlap(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether two boxes (left, top, width, height) have anything in common."""
    return all(first[at] < second[at] + second[at + 2] and second[at] < first[at] + first[at + 2] for at in (0, 1))
