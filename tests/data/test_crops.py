"""Boxes of a COCO file as images: pixels, labels, what is left out, and files that do not fit."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from vantage.data import open_source
from vantage.data.sources.crops import BoxCrops
from vantage.errors import DataError


def write_coco(folder: Path, change: dict[str, Any] | None = None) -> Path:
    """Two photographs with five boxes; returns the file."""
    (folder / "annotations").mkdir(parents=True)
    (folder / "train2017").mkdir()
    chance = np.random.default_rng(0)
    for number in (7, 9):
        Image.fromarray(chance.integers(0, 256, (60, 80, 3)).astype(np.uint8)).save(folder / f"train2017/{number}.png")
    boxes = [(7, 3, [0, 0, 40, 40], 0), (7, 1, [10.4, 5.6, 33.2, 50], 0), (9, 3, [40, 20, 50, 60], 0)]
    boxes += [(9, 2, [0, 0, 60, 60], 1), (9, 2, [0, 0, 10, 50], 0)]  # a group, and one too thin
    content = {
        "images": [{"id": number, "file_name": f"{number}.png", "width": 80, "height": 60} for number in (7, 9)],
        "categories": [{"id": number, "name": name} for number, name in ((1, "cat"), (2, "dog"), (3, "cow"))],
        "annotations": [
            {"id": 100 + number, "image_id": image, "category_id": category, "bbox": box, "iscrowd": crowd}
            for number, (image, category, box, crowd) in enumerate(boxes)
        ],
    }
    file = folder / "annotations" / "instances_train2017.json"
    file.write_text(json.dumps({**content, **(change or {})}))
    return file


def test_boxes_are_images(tmp_path: Path) -> None:
    source = open_source(f"crops:{write_coco(tmp_path)}")
    assert isinstance(source, BoxCrops)
    assert len(source) == 3 and source.classes == ("cat", "cow")
    assert [source.label(number) for number in range(3)] == [1, 0, 1]
    whole = torch.from_numpy(np.array(Image.open(tmp_path / "train2017" / "7.png"))).permute(2, 0, 1)
    assert torch.equal(source.image(0), whole[:, :40, :40])
    assert torch.equal(source.image(1), whole[:, 6:56, 10:44])
    assert source.image(2).shape == (3, 40, 40)  # clipped at the edges of the photograph
    assert source.name(1) == "7.png box 101"
    assert len(BoxCrops(tmp_path / "annotations" / "instances_train2017.json", least_side=10)) == 4
    same = BoxCrops(tmp_path / "annotations" / "instances_train2017.json", tmp_path / "train2017")
    assert same.fingerprint() == source.fingerprint() and same.stamp() == source.stamp()


def test_files_that_do_not_fit(tmp_path: Path) -> None:
    file = write_coco(tmp_path)
    with pytest.raises(DataError, match="no box with sides of 70 pixels"):
        BoxCrops(file, least_side=70)
    Image.fromarray(np.zeros((20, 20, 3), np.uint8)).save(tmp_path / "train2017" / "7.png")
    with pytest.raises(DataError, match="ends outside 7.png"):
        BoxCrops(file).image(0)
    (tmp_path / "train2017" / "7.png").unlink()
    with pytest.raises(DataError, match="7.png, which does not exist"):
        BoxCrops(file)
    file.write_text(json.dumps({"images": []}))
    with pytest.raises(DataError, match="has no categories, annotations"):
        BoxCrops(file)
    file.write_text("{")
    with pytest.raises(DataError, match="cannot read"):
        BoxCrops(file)


def test_real_photographs(shared_data: Path, tmp_path: Path) -> None:
    import tarfile

    with tarfile.open(shared_data / "tiny-coco-100.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    train = open_source(f"crops:{tmp_path / 'tiny-coco/annotations/instances_train2017.json'}")
    test = open_source(f"crops:{tmp_path / 'tiny-coco/annotations/instances_val2017.json'}")
    assert len(train) > 200 and len(test) > 150 and "person" in train.classes
    for number in range(0, len(train), 25):
        assert min(train.image(number).shape[1:]) >= 32
