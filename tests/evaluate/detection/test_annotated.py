"""Annotated images: reading of COCO and VOC files, selections of images, and errors."""

import copy
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from annotated import coco_content, small_coco, write_coco, write_voc

from vantage.data.sources.source import cache_key
from vantage.errors import DataError, UserError
from vantage.evaluate.protocols.detection import (
    VOC_CLASSES,
    AnnotatedSource,
    CocoImages,
    JoinedImages,
    OfClasses,
    SelectedImages,
    VocImages,
    mask_of,
    open_annotated,
    run_lengths,
    split_annotated,
)
from vantage.evaluate.protocols.detection.sources.masks import decompress


def test_a_coco_file_is_read_by_ids_and_its_images_are_located(tmp_path: Path) -> None:
    content, pictures = coco_content()
    source = open_annotated(write_coco(tmp_path, content, pictures))
    assert isinstance(source, AnnotatedSource) and source.classes == ("box", "person") and len(source) == 6
    assert list(source.keypoints) == ["person"] and source.has_masks
    by_id = sorted(content["images"], key=lambda image: image["id"])
    for number, image in enumerate(by_id):
        assert source.name(number) == image["file_name"] and source.size(number) == (64, 72)
        pixels = torch.from_numpy(pictures[int(Path(image["file_name"]).stem)]).permute(2, 0, 1)
        assert torch.equal(source.image(number), pixels)
        own = [one for one in content["annotations"] if one["image_id"] == image["id"]]
        instances = source.instances(number)
        assert len(instances) == len(own) and source.label(number) is None
        for row, one in enumerate(own):
            left, top, across, down = one["bbox"]
            assert instances.box[row].tolist() == [left, top, left + across, top + down]
            assert source.classes[int(instances.label[row])] == ("person" if one["category_id"] == 7 else "box")
            mask = mask_of(source.masks(number)[row])
            rectangle = (pixels[0].int() - pixels[1].int()).abs() > 100
            assert torch.equal(mask, rectangle) and float(instances.area[row]) == mask.sum()
            assert instances.points is not None and bool((instances.points[row, :, 2] == 2).all()) == (
                one["category_id"] == 7
            )


def test_selections_notice_a_replaced_image(tmp_path: Path) -> None:
    file = small_coco(tmp_path)
    source = open_annotated(file)
    views = [SelectedImages(source, [0, 1]), JoinedImages([source, source]), OfClasses(source, ("person", "box"))]
    keys = [cache_key(view) for view in views]
    image = next((tmp_path / "train").iterdir())
    os.utime(image, (1, 1))
    assert all(cache_key(view) != key for view, key in zip(views, keys, strict=True))


def test_run_lengths_round_trip() -> None:
    mask = torch.rand(13, 7) < 0.4
    assert torch.equal(mask_of(run_lengths(mask)), mask)


def test_uncompressed_runs_count_columns(tmp_path: Path) -> None:
    content, pictures = coco_content(1)
    runs = [64 * 3, 5, 64 * 72 - 64 * 3 - 5]
    content["annotations"][0]["segmentation"] = {"size": [64, 72], "counts": runs}
    mask = mask_of(open_annotated(write_coco(tmp_path, content, pictures)).masks(0)[0])
    assert mask.nonzero().tolist() == [[row, 3] for row in range(5)]


def test_boxes_are_clipped_and_empty_ones_left_out(tmp_path: Path) -> None:
    content, pictures = coco_content(1)
    one = content["annotations"][0]
    one["bbox"] = [-5, 50, 200, 40]
    content["annotations"].append({**one, "id": 2, "bbox": [3, 3, 0, 9]})
    instances = open_annotated(write_coco(tmp_path, content, pictures)).instances(0)
    assert instances.box.tolist() == [[0, 50, 72, 64]]


def test_voc_round_trip(tmp_path: Path) -> None:
    boxes = {
        "000005": [("chair", (1, 1, 1, 1), 0), ("dog", (3, 5, 50, 40), 1)],
        "000007": [],
    }
    write_voc(tmp_path / "VOC2007", boxes, "trainval")
    source = open_annotated(f"{tmp_path}/VOC2007#trainval")
    assert isinstance(source, VocImages) and source.classes == VOC_CLASSES and len(source) == 2
    instances = source.instances(0)
    assert instances.box.tolist() == [[0, 0, 1, 1], [2, 4, 50, 40]] and instances.difficult.tolist() == [False, True]
    assert [source.classes[label] for label in instances.label] == ["chair", "dog"] and instances.area.tolist() == [
        1,
        48 * 36,
    ]
    assert source.image(0).shape == (3, 40, 50) and len(source.instances(1)) == 0
    again = [
        (source.classes[label], (int(box[0]) + 1, int(box[1]) + 1, int(box[2]), int(box[3])), int(difficult))
        for box, label, difficult in zip(instances.box, instances.label, instances.difficult, strict=True)
    ]
    assert again == boxes["000005"]
    write_voc(tmp_path / "VOC2012", {"1": boxes["000005"]}, "trainval")
    both = open_annotated(f"{tmp_path}/VOC2007#trainval,{tmp_path}/VOC2012#trainval")
    assert len(both) == 3 and both.name(2) == "JPEGImages/1.jpg" and len(both.instances(2)) == 2
    with pytest.raises(DataError, match="has boxes, but no masks"):
        source.masks(0)
    with pytest.raises(DataError, match=r"name a split after # \(trainval\)"):
        open_annotated(tmp_path / "VOC2007")


def test_a_voc_file_without_a_size_is_refused(tmp_path: Path) -> None:
    """Some programs write 0; all boxes of the image would be clipped to nothing, and the image be one without any."""
    write_voc(tmp_path, {"1": [("dog", (1, 1, 9, 9), 0)], "2": [("dog", (1, 1, 9, 9), 0)]}, "train")
    file = tmp_path / "Annotations" / "2.xml"
    file.write_text(file.read_text().replace("<width>50</width>", "<width>0</width>"))
    with pytest.raises(DataError, match=r"2.xml says that its image has 0 x 40 pixels: correct the size"):
        open_annotated(f"{tmp_path}#train")


def test_parts_and_other_classes(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    train, test = split_annotated(source)
    names = {part.name(number) for part in (train, test) for number in range(len(part))}
    assert (len(train), len(test), test.name(0)) == (5, 1, "5.png") and names == {
        source.name(number) for number in range(6)
    }
    assert train.fingerprint() != test.fingerprint() != source.fingerprint()
    with_classes = OfClasses(source, ["person", "other", "box"])
    for number in range(6):
        assert with_classes.instances(number).label.tolist() == [
            {0: 2, 1: 0}[x] for x in source.instances(number).label.tolist()
        ]
    with pytest.raises(UserError, match=r"1 class that the training images do not have \(box\)"):
        OfClasses(source, ["person"])
    people = OfClasses(source, ["person"], leave_out=True)
    counts = [len(people.instances(number)) for number in range(6)]
    assert sum(counts) == 3 and counts == [len(people.masks(number)) for number in range(6)]
    with pytest.raises(UserError, match="too few to hold out"):
        split_annotated(SelectedImages(source, [0]))


def test_fingerprints_follow_the_annotations(tmp_path: Path) -> None:
    content, pictures = coco_content()
    first = CocoImages(write_coco(tmp_path / "a", content, pictures)).fingerprint()
    assert CocoImages(write_coco(tmp_path / "b", content, pictures)).fingerprint() == first
    content["annotations"][0]["bbox"][0] += 1
    assert CocoImages(write_coco(tmp_path / "c", content, pictures)).fingerprint() != first


def _bad(change: str) -> tuple[dict, str]:
    content, _ = coco_content(3)
    content = copy.deepcopy(content)
    one = content["annotations"][0]
    message = "correct or remove"
    match change:
        case "no list":
            del content["categories"]
            message = "has no list of categories"
        case "nothing":
            content["annotations"] = []
            message = "has no annotations"
        case "other image":
            one["image_id"] = 5
            message = "is of image 5, which is not in the file"
        case "other category":
            one["category_id"] = 5
            message = "is of category 5, which is not in the file"
        case "twice":
            content["categories"][0]["name"] = "box"
            message = "two categories the same name"
        case "size":
            one["segmentation"] = {"size": [72, 64], "counts": [72 * 64]}
            message = "belongs to another image"
        case "runs":
            one["segmentation"] = {"size": [64, 72], "counts": [5, 5]}
            message = "cover 10 pixels of 4608"
        case "corners":
            one["segmentation"] = [[1, 1, 2, 2]]
            message = "three corners"
        case "outside":
            one["segmentation"] = [[900, 900, 905, 905, 900, 905]]
            message = "lies outside its box"
        case "field":
            del content["images"][0]["height"]
            message = "has no height"
    return content, message


@pytest.mark.parametrize(
    "change",
    ["no list", "nothing", "other image", "other category", "twice", "size", "runs", "corners", "outside", "field"],
)
def test_a_wrong_coco_file_is_refused(tmp_path: Path, change: str) -> None:
    _, pictures = coco_content(3)
    content, message = _bad(change)
    with pytest.raises(DataError, match=message):
        open_annotated(write_coco(tmp_path, content, pictures))


def test_unreadable_paths_are_refused(tmp_path: Path) -> None:
    file = small_coco(tmp_path)
    with pytest.raises(DataError, match="does not exist"):
        open_annotated(tmp_path / "nothing.json")
    with pytest.raises(DataError, match="Name one of its files: annotations/instances_train.json"):
        open_annotated(tmp_path)
    (tmp_path / "list.txt").write_text("1.png")
    with pytest.raises(DataError, match="detection needs boxes"):
        open_annotated(tmp_path / "list.txt")
    (tmp_path / "train" / "2.png").unlink()
    with pytest.raises(DataError, match="1 of the 6 images .* such as 2.png"):
        open_annotated(file)
    (tmp_path / "broken.json").write_text("{")
    with pytest.raises(DataError, match="is not JSON"):
        open_annotated(tmp_path / "broken.json")


def test_a_picture_of_another_size_is_refused(tmp_path: Path) -> None:
    content, pictures = coco_content(1)
    content["images"][0]["height"] = 63
    content["annotations"][0]["segmentation"] = []
    with pytest.raises(DataError, match="has 72 x 64 pixels, but .* says 72 x 63"):
        open_annotated(write_coco(tmp_path, content, pictures)).image(0)


def test_images_may_lie_elsewhere(tmp_path: Path) -> None:
    content, pictures = coco_content(2)
    file = write_coco(tmp_path, content, pictures)
    (tmp_path / "train").rename(tmp_path / "pictures")
    with pytest.raises(DataError, match="name their folder after #"):
        open_annotated(file)
    assert len(open_annotated(f"{file}#../pictures")) == 2


def test_real_files(tmp_path: Path, shared_data: Path) -> None:
    with tarfile.open(shared_data / "tiny-coco-100.tar.gz") as tar:
        tar.extractall(tmp_path, filter="data")
    source = open_annotated(tmp_path / "tiny-coco/annotations/instances_train2017.json")
    instances = [source.instances(number) for number in range(len(source))]
    assert (len(source), len(source.classes), sum(map(len, instances))) == (50, 80, 470)
    assert sum(int(one.crowd.sum()) for one in instances) == 5
    content = json.loads((tmp_path / "tiny-coco/annotations/instances_train2017.json").read_text())
    area = {one["id"]: one["area"] for one in content["annotations"] if not one["iscrowd"]}
    ours = [
        float(mask_of(mask).sum()) for n, one in enumerate(instances)
        for mask, crowd in zip(source.masks(n), one.crowd, strict=True) if not crowd
    ]  # fmt: skip
    assert len(ours) == len(area) and abs(np.sum(ours) / sum(area.values()) - 1) < 0.01


def test_compressed_runs_are_unpacked_as_pycocotools_packs_them() -> None:
    chance = np.random.default_rng(0)
    for _ in range(50):
        high, wide = chance.integers(1, 60, 2)
        mask = torch.from_numpy(chance.random((high, wide)) < chance.random() ** 2)
        if chance.random() < 0.3:
            mask[high // 3 :, wide // 3 :] = True
        runs, last = [0], False
        for value in mask.T.flatten().tolist():  # column by column, the background first
            runs += [0] if value != last else []
            runs[-1], last = runs[-1] + 1, value
        assert decompress(run_lengths(mask).counts.decode()) == runs
    for text in ("0" * 5 + "!", "P", "ooooooooooooooooo0"):
        with pytest.raises(ValueError, match="run lengths"):
            decompress(text)
