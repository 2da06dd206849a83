"""VOC's own average precision, against a loop that follows the development kit's description, and by hand."""

from pathlib import Path
from typing import Any

import pytest
import torch
from annotated import small_coco, write_voc

from vantage.errors import UserError
from vantage.evaluate.protocols.detection import Detections, SelectedImages, open_annotated, voc_precision_of
from vantage.evaluate.protocols.detection.detector_protocol import average_precisions
from vantage.evaluate.protocols.detection.outputs import Boxes
from vantage.evaluate.protocols.detection.voc_scoring import is_voc


def voc(folder: Path, images: int = 8, seed: int = 0) -> Any:
    """Cats and dogs in boxes that overlap each other here and there; a quarter of them difficult."""
    chance = torch.Generator().manual_seed(seed)
    boxes = {}
    for number in range(images):
        own = []
        for _ in range(int(torch.randint(0, 5, (), generator=chance))):
            left, top = (1 + 20 * torch.rand(2, generator=chance)).int().tolist()
            across, down = (6 + 15 * torch.rand(2, generator=chance)).int().tolist()
            hard = int(torch.rand((), generator=chance) < 0.25)
            kind = ("cat", "dog")[int(torch.rand((), generator=chance) < 0.5)]
            own.append((kind, (left, top, left + across, top + down), hard))
        boxes[str(number)] = own
    write_voc(folder, boxes, "test")
    return open_annotated(f"{folder}#test")


def guesses(source: Any, seed: int) -> list[Detections]:
    """Each instance up to three times, moved a little, some as the other class; and two boxes anywhere."""
    chance = torch.Generator().manual_seed(seed)
    cat, dog = source.classes.index("cat"), source.classes.index("dog")
    detections = []
    for number in range(len(source)):
        instances = source.instances(number)
        box = torch.cat(
            [instances.box + deviation * torch.randn(len(instances), 4, generator=chance) for deviation in (0, 1, 2)]
        )
        corner = 20 * torch.rand(2, 2, generator=chance)
        box = torch.cat([box, torch.cat([corner, corner + 15], 1)])
        label = torch.cat([instances.label.repeat(3), torch.tensor([cat, dog])])
        other = torch.rand(len(label), generator=chance) < 0.15
        label = torch.where(other, cat + dog - label, label)
        detections.append(Detections(box, label, torch.rand(len(label), generator=chance)))
    return detections


def overlap(first: list[float], second: list[float]) -> float:
    """As the kit counts: from 1, the last pixel included."""
    a, b = ([box[0] + 1, box[1] + 1, box[2], box[3]] for box in (first, second))
    across = min(a[2], b[2]) - max(a[0], b[0]) + 1
    down = min(a[3], b[3]) - max(a[1], b[1]) + 1
    if across <= 0 or down <= 0:
        return 0.0
    sizes = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (a, b)]
    return across * down / (sum(sizes) - across * down)


def by_loop(source: Any, detections: list[Detections], label: int, threshold: float) -> float:
    truth = {
        number: [(box.tolist(), bool(hard)) for box, one, hard in zip(own.box, own.label, own.difficult, strict=True)
                 if int(one) == label]
        for number, own in ((number, source.instances(number)) for number in range(len(source)))
    }  # fmt: skip
    guess = sorted(
        ((float(score), number, box.tolist()) for number, one in enumerate(detections)
         for box, own, score in zip(one.box, one.label, one.score, strict=True) if int(own) == label),
        key=lambda one: -one[0],
    )  # fmt: skip
    count = sum(not hard for own in truth.values() for _, hard in own)
    matches, hits, wrong, curve = set(), 0, 0, []
    for _, number, box in guess:
        best, most = -1, 0.0
        for position, (other, _) in enumerate(truth[number]):
            if overlap(box, other) > most:
                best, most = position, overlap(box, other)
        if most > threshold and truth[number][best][1]:
            continue
        if most > threshold and (number, best) not in matches:
            matches.add((number, best))
            hits += 1
        else:
            wrong += 1
        curve.append((hits / count, hits / (hits + wrong)))
    recalls = (at / 10 for at in range(11))
    return 100 * sum(max((p for r, p in curve if r >= recall), default=0.0) for recall in recalls) / 11


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_it_equals_a_plain_loop(tmp_path: Path, seed: int) -> None:
    source = voc(tmp_path, seed=seed)
    assert any(bool(source.instances(number).difficult.any()) for number in range(len(source)))
    detections = guesses(source, seed)
    ours = voc_precision_of(source, detections)
    labels = {name: source.classes.index(name) for name in ("cat", "dog")}
    table = {
        name: [by_loop(source, detections, label, (50 + 5 * step) / 100) for step in range(10)]
        for name, label in labels.items()
    }
    for name, expected in table.items():
        assert ours.of_class[name] == pytest.approx(sum(expected) / 10, abs=1e-9)
    assert ours.of_class["bird"] is None
    mean = [sum(pair) / 2 for pair in zip(*table.values(), strict=True)]
    assert ours.measures["AP"] == pytest.approx(sum(mean) / 10, abs=1e-9) and 5 < sum(mean) / 10 < 95
    assert ours.measures["AP50"] == pytest.approx(mean[0], abs=1e-9)
    assert ours.measures["AP75"] == pytest.approx(mean[5], abs=1e-9)


def test_it_equals_values_computed_by_hand(tmp_path: Path) -> None:
    write_voc(tmp_path, {"1": [("dog", (1, 1, 10, 10), 0), ("dog", (21, 1, 30, 10), 1)], "2": []}, "test")
    source = open_annotated(f"{tmp_path}#test")
    dog = source.classes.index("dog")
    object_box, hard, background = [0.0, 0.0, 10.0, 10.0], [20.0, 0.0, 30.0, 10.0], [35.0, 20.0, 45.0, 30.0]

    def score(*boxes: list[float]) -> float:
        scores = torch.linspace(0.9, 0.5, len(boxes))
        first = Detections(torch.tensor(boxes).reshape(-1, 4), torch.full((len(boxes),), dog), scores)
        second = Detections(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64), torch.zeros(0))
        precision = voc_precision_of(source, [first, second]).measures["AP50"]
        assert precision is not None
        return precision

    assert score() == 0 and score(object_box) == pytest.approx(100)
    assert score(object_box, object_box, background) == pytest.approx(100)  # a lower certainty takes nothing away
    assert score(background, object_box) == pytest.approx(50)
    assert score(hard, hard, object_box) == pytest.approx(100)
    assert score([0.0, 0.0, 10.0, 5.0]) == 0  # half is not more than half
    with pytest.raises(UserError, match="results for 1 images, but the source has 2"):
        voc_precision_of(source, [Detections(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64), torch.zeros(0))])
    none = [Detections(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64), torch.zeros(0))]
    with pytest.raises(UserError, match="no test image shows anything"):
        voc_precision_of(SelectedImages(source, [1]), none)


def test_voc_images_are_recognized(tmp_path: Path) -> None:
    source, other = voc(tmp_path / "voc"), open_annotated(small_coco(tmp_path / "coco"))
    voc(tmp_path / "more")
    both = open_annotated(f"{tmp_path}/voc#test,{tmp_path}/more#test")
    assert is_voc(source) and is_voc(both) and is_voc(SelectedImages(both, [0, 2])) and not is_voc(other)


def test_both_kinds_of_precision_are_reported(tmp_path: Path) -> None:
    source = voc(tmp_path)
    detections = guesses(source, 1)
    measures, details = average_precisions(source, detections, Boxes())
    assert list(measures) == ["AP", "AP50", "AP75", "VOC07 AP", "VOC07 AP50", "VOC07 AP75"]
    assert measures["VOC07 AP50"] == voc_precision_of(source, detections).measures["AP50"] != measures["AP50"]
    assert details["VOC07 AP of each class shown"].keys() == {"cat", "dog"}  # pyright: ignore
