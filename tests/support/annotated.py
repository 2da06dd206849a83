"""Small annotated sets in the formats of COCO and VOC: colored rectangles on noise."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

POINTS = (
    *("nose", "left_eye", "right_eye", "left_ear", "right_ear", "left_shoulder", "right_shoulder", "left_elbow"),
    *("right_elbow", "left_wrist", "right_wrist", "left_hip", "right_hip", "left_knee", "right_knee", "left_ankle"),
    "right_ankle",
)


def coco_content(images: int = 6, side: int = 64, seed: int = 0) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The content of a COCO file, and its pictures: each shows one red "box" or one green "person" with keypoints, and
    every fifth shows nothing. Ids differ from positions."""
    chance = np.random.default_rng(seed)
    pictures, annotations = [], []
    for number in range(images):
        pixels = chance.integers(90, 130, (side, side + 8, 3), dtype=np.uint8)
        person = number % 2
        left, top = chance.integers(4, side // 2, 2).tolist()
        across, down = chance.integers(side // 4, side // 2 - 4, 2).tolist()
        if number % 5 != 4:
            pixels[top : top + down, left : left + across] = (20, 220, 20) if person else (230, 20, 20)
            corners = [left, top, left + across, top, left + across, top + down, left, top + down]
            x = np.linspace(left, left + across - 1, 17).round().astype(int)
            y = np.linspace(top, top + down - 1, 17).round().astype(int)
            one = {
                **{"id": 100 + number, "image_id": 10 * (images - number), "category_id": 7 if person else 3},
                **{"bbox": [left, top, across, down], "area": across * down, "iscrowd": 0, "segmentation": [corners]},
            }
            if person:
                points = [value for pair in zip(x.tolist(), y.tolist(), strict=True) for value in (*pair, 2)]
                one |= {"keypoints": points, "num_keypoints": 17}
            annotations.append(one)
        pictures.append(pixels)
    content = {
        "images": [
            {"id": 10 * (images - n), "file_name": f"{n}.png", "height": side, "width": side + 8} for n in range(images)
        ],
        "categories": [{"id": 7, "name": "person", "keypoints": list(POINTS)}, {"id": 3, "name": "box"}],
        "annotations": annotations,
    }
    return content, pictures


def write_coco(folder: Path, content: dict[str, Any], pictures: list[np.ndarray], split: str = "train") -> Path:
    """Write the file and a folder of the pictures, laid out as in COCO; returns the file's path."""
    (folder / split).mkdir(parents=True, exist_ok=True)
    (folder / "annotations").mkdir(exist_ok=True)
    for image, pixels in zip(content["images"], pictures, strict=True):
        Image.fromarray(pixels).save(folder / split / image["file_name"])
    file = folder / "annotations" / f"instances_{split}.json"
    file.write_text(json.dumps(content))
    return file


def small_coco(folder: Path, split: str = "train", images: int = 6, seed: int = 0) -> Path:
    """Make and write a small COCO set."""
    return write_coco(folder, *coco_content(images, seed=seed), split)


def write_voc(root: Path, boxes: dict[str, list[tuple[str, tuple[int, int, int, int], int]]], split: str) -> None:
    """Write a VOC folder. `boxes` has, by image, each object's class, box (pixels count from 1, the last one is
    included) and difficulty."""
    for below in ("ImageSets/Main", "Annotations", "JPEGImages"):
        (root / below).mkdir(parents=True, exist_ok=True)
    (root / "ImageSets/Main" / f"{split}.txt").write_text("".join(f"{name}\n" for name in boxes))
    for name, own in boxes.items():
        Image.fromarray(np.full((40, 50, 3), 100, np.uint8)).save(root / "JPEGImages" / f"{name}.jpg")
        objects = "".join(
            f"<object><name>{label}</name><difficult>{difficult}</difficult><bndbox><xmin>{box[0]}</xmin>"
            f"<ymin>{box[1]}</ymin><xmax>{box[2]}</xmax><ymax>{box[3]}</ymax></bndbox></object>"
            for label, box, difficult in own
        )
        size = "<size><width>50</width><height>40</height><depth>3</depth></size>"
        (root / "Annotations" / f"{name}.xml").write_text(f"<annotation>{size}{objects}</annotation>")
