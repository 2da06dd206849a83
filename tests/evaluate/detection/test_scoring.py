"""Average precision: against pycocotools on files, against a plain loop, and ignored instances."""

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from annotated import coco_content, small_coco, write_coco, write_voc
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from vantage.errors import UserError
from vantage.evaluate.protocols.detection import (
    Detections,
    SelectedImages,
    mask_of,
    open_annotated,
    precision_of,
    run_lengths,
)


def guesses(source: Any, seed: int = 0) -> list[Detections]:
    """True instances moved a little, some with another class, and some boxes anywhere."""
    chance = torch.Generator().manual_seed(seed)
    detections = []
    for number in range(len(source)):
        instances = source.instances(number)
        count = len(instances)
        moved_box = instances.box + 3 * torch.randn(count, 4, generator=chance)
        corner = 30 * torch.rand(3, 2, generator=chance)
        box = torch.cat([moved_box, torch.cat([corner, corner + 25], 1)])
        wrong = torch.rand(count, generator=chance) < 0.2
        label = torch.cat([torch.where(wrong, 1 - instances.label, instances.label), torch.tensor([0, 1, 0])])
        score = torch.rand(count + 3, generator=chance)
        height, width = source.size(number)
        masks = []
        for left, top, right, bottom in box.round().int().tolist():
            mask = torch.zeros(height, width, dtype=torch.bool)
            mask[max(0, top) : bottom, max(0, left) : right] = True
            masks.append(run_lengths(mask))
        points = torch.zeros(count + 3, 17, 3)
        points[:count] = instances.points + 0.8 * torch.randn(count, 17, 3, generator=chance)
        points[count:, :, :2] = 60 * torch.rand(3, 17, 2, generator=chance)
        detections.append(Detections(box, label, score, tuple(masks), points))
    return detections


def pycocotools_stats(source: Any, detections: list[Detections], file: Path, kind: Any) -> np.ndarray:
    """pycocotools on the annotation file and a results file, with the file's own ids and categories."""
    results = []
    content = json.loads(file.read_text())
    ids = {image["file_name"]: image["id"] for image in content["images"]}
    category = {each["name"]: each["id"] for each in content["categories"]}
    for number, one in enumerate(detections):
        for row in range(len(one.label)):
            left, top, right, bottom = one.box[row].tolist()
            result: dict[str, Any] = {
                "image_id": ids[source.name(number)],
                "category_id": category[source.classes[int(one.label[row])]],
                "score": float(one.score[row]),
            }
            if kind == "bbox":
                result["bbox"] = [left, top, right - left, bottom - top]
            if kind == "segm":
                assert one.masks is not None
                runs = one.masks[row]
                result["segmentation"] = {"size": [runs.height, runs.width], "counts": runs.counts.decode()}
            if kind == "keypoints":
                assert one.points is not None
                result["keypoints"] = one.points[row].flatten().tolist()
            results.append(result)
    where = file.parent / "results.json"
    where.write_text(json.dumps(results))
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(file))
        judge = COCOeval(truth, truth.loadRes(str(where)), kind)
        judge.evaluate()
        judge.accumulate()
        judge.summarize()
    return 100 * np.asarray(judge.stats)


@pytest.mark.parametrize("kind", ["bbox", "segm", "keypoints"])
def test_it_equals_pycocotools_on_files(tmp_path: Path, kind: Any) -> None:
    content, pictures = coco_content(12)
    if kind == "keypoints":  # the file's other class has none
        content["categories"] = content["categories"][:1]
        content["annotations"] = [one for one in content["annotations"] if one["category_id"] == 7]
        content["categories"].append({"id": 3, "name": "zebra", "keypoints": content["categories"][0]["keypoints"]})
    content["annotations"][1]["iscrowd"] = 1
    content["annotations"][1]["segmentation"] = {"size": [64, 72], "counts": [640, 500, 64 * 72 - 1140]}
    file = write_coco(tmp_path, content, pictures)
    source = open_annotated(file)
    detections = guesses(source)
    ours = precision_of(source, detections, kind).measures
    expected = pycocotools_stats(source, detections, file, kind)
    assert 5 < expected[0] < 95
    for value, target in zip(ours.values(), expected, strict=False):
        assert (value is None and target < 0) or value == pytest.approx(target, abs=1e-9)


def overlap(first: list[float], second: list[float]) -> float:
    across = min(first[2], second[2]) - max(first[0], second[0])
    down = min(first[3], second[3]) - max(first[1], second[1])
    both = max(0.0, across) * max(0.0, down)
    area = [(box[2] - box[0]) * (box[3] - box[1]) for box in (first, second)]
    return both / (sum(area) - both)


def by_loop(source: Any, detections: list[Detections], label: int, threshold: float) -> float:
    """Average precision of one class: the most certain first, each to the free instance it overlaps most; precision
    at 101 recalls, of each the best at that recall or any higher."""
    guess = sorted(
        ((float(one.score[row]), number, one.box[row].tolist())
         for number, one in enumerate(detections) for row in range(len(one.label)) if int(one.label[row]) == label),
        key=lambda one: -one[0],
    )  # fmt: skip
    free = {
        number: [source.instances(number).box[row].tolist() for row in range(len(source.instances(number)))
                 if int(source.instances(number).label[row]) == label]
        for number in range(len(source))
    }  # fmt: skip
    total = sum(len(boxes) for boxes in free.values())
    hits, curve = 0, []
    for count, (_, number, box) in enumerate(guess, 1):
        best = max(free[number], key=lambda other: overlap(box, other), default=None)
        if best is not None and overlap(box, best) >= threshold:
            free[number].remove(best)
            hits += 1
        curve.append((hits / total, hits / count))
    recalls = np.linspace(0, 1, 101)
    return 100 * float(np.mean([max((p for r, p in curve if r >= at), default=0.0) for at in recalls]))


def test_it_equals_a_plain_loop(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path, images=14))
    detections = guesses(source, 1)
    thresholds = [0.5 + 0.05 * step for step in range(10)]
    ours = precision_of(source, detections, "bbox")
    for label, name in enumerate(source.classes):
        expected = np.mean([by_loop(source, detections, label, threshold) for threshold in thresholds])
        assert ours.of_class[name] == pytest.approx(expected, abs=1e-6)
    half = np.mean([by_loop(source, detections, label, 0.5) for label in (0, 1)])
    assert ours.measures["AP50"] == pytest.approx(half, abs=1e-6) and 10 < half < 95


def test_the_truth_scores_a_hundred_and_nothing_scores_nothing(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    exact, empty = [], []
    for number in range(len(source)):
        instances = source.instances(number)
        points = instances.points
        exact.append(
            Detections(instances.box, instances.label, torch.ones(len(instances)), source.masks(number), points)
        )
        empty.append(Detections(instances.box[:0], instances.label[:0], torch.ones(0), ()))
    for kind in ("bbox", "segm"):
        assert precision_of(source, exact, kind).measures["AP"] == pytest.approx(100)
        assert precision_of(source, empty, kind).measures["AP"] == 0
    assert precision_of(source, exact, "bbox").measures["AP large"] is None
    assert bool(mask_of(source.masks(0)[0]).any())


def test_difficult_instances_do_not_count(tmp_path: Path) -> None:
    box = (5, 5, 30, 30)
    write_voc(tmp_path, {"1": [("dog", box, 0)], "2": [("dog", box, 1)], "3": [("dog", box, 1)]}, "test")
    source = open_annotated(f"{tmp_path}#test")
    instances = source.instances(0)
    dog = instances.label
    hit = Detections(instances.box, dog, torch.tensor([0.5]))
    certain_hit = Detections(instances.box, dog, torch.tensor([0.9]))
    no_boxes = Detections(instances.box[:0], dog[:0], torch.tensor([]))
    assert precision_of(source, [hit, certain_hit, no_boxes], "bbox").measures["AP"] == pytest.approx(100)
    misplaced = Detections(instances.box + 100, dog, torch.tensor([0.9]))
    assert precision_of(source, [hit, misplaced, no_boxes], "bbox").measures["AP"] == pytest.approx(50)
    with pytest.raises(UserError, match="no test image shows anything"):
        precision_of(SelectedImages(source, [1, 2]), [certain_hit, no_boxes], "bbox")


def test_invalid_detections_are_refused(tmp_path: Path) -> None:
    content, pictures = coco_content(2)
    content["categories"][0]["keypoints"] = ["nose", "tail"]
    content["annotations"][1]["keypoints"] = [1, 1, 2, 3, 3, 2]
    source = open_annotated(write_coco(tmp_path, content, pictures))
    empty = Detections(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64), torch.zeros(0))
    with pytest.raises(UserError, match="2 keypoints, but average precision"):
        precision_of(source, [empty, empty], "keypoints")
    with pytest.raises(UserError, match="results for 1 images, but the source has 2"):
        precision_of(source, [empty], "bbox")
