"""Training examples of detectors: selection, order and mirroring."""

from pathlib import Path

import pytest
import torch
from annotated import POINTS, coco_content, small_coco, write_coco

from vantage.errors import UserError
from vantage.evaluate.protocols.detection import (
    Boxes,
    Keypoints,
    Masks,
    example,
    mirror_example,
    mirror_order,
    open_annotated,
)
from vantage.evaluate.protocols.detection.examples import batches_from, training_images
from vantage.evaluate.protocols.detection.order import StepOrder, wide


def test_a_mirrored_example_shows_the_mirrored_instances(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    swap = mirror_order(POINTS)
    assert [POINTS[point] for point in swap[:4]] == ["nose", "right_eye", "left_eye", "right_ear"]
    for number in range(len(source)):
        one = example(source, number, Masks())
        mirrored = mirror_example(one, swap)
        assert mirrored.masks is not None and one.masks is not None and mirrored.image.equal(one.image.flip(2))
        for box, mask, label in zip(mirrored.box, mirrored.masks, mirrored.label, strict=True):
            rows, columns = mask.nonzero().unbind(1)
            extent = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert box.tolist() == [int(value) for value in extent] and int(label) in (1, 2)
        assert mirror_example(mirrored, swap).box.equal(one.box)
    one = example(source, 0, Keypoints(17))
    assert one.points is not None
    mirrored = mirror_example(one, swap)
    assert mirrored.points is not None
    left, right = POINTS.index("left_eye"), POINTS.index("right_eye")
    assert mirrored.points[:, left, 0].equal(72 - 1 - one.points[:, right, 0])
    again = mirror_example(mirrored, swap).points
    assert again is not None and again.equal(one.points)


def test_points_that_are_not_labeled_stay_at_the_origin(tmp_path: Path) -> None:
    content, pictures = coco_content(2)
    content["annotations"][1]["keypoints"][:3] = [0, 0, 0]
    source = open_annotated(write_coco(tmp_path, content, pictures))
    points = mirror_example(example(source, 0, Keypoints(17)), mirror_order(POINTS)).points
    assert points is not None and points[0, 0].tolist() == [0, 0, 0]


def test_images_without_boxes_are_left_out_or_kept(tmp_path: Path) -> None:
    content, pictures = coco_content(6)
    content["annotations"][0]["iscrowd"] = 1
    source = open_annotated(write_coco(tmp_path, content, pictures))
    kept_images = training_images(source, Boxes(), keep_empty=False)
    assert {kept_images.name(number) for number in range(len(kept_images))} == {"1.png", "2.png", "3.png", "5.png"}
    assert len(training_images(source, Boxes(), keep_empty=True)) == 6
    people = training_images(source, Keypoints(17), keep_empty=False)
    assert {people.name(number) for number in range(len(people))} == {"1.png", "3.png", "5.png"}
    crowd = next(number for number in range(6) if source.name(number) == "0.png")
    assert len(example(source, crowd, Masks()).label) == 0
    for one in content["annotations"]:
        one["iscrowd"] = 1
    with pytest.raises(UserError, match="none of the 6 training images has boxes"):
        training_images(open_annotated(write_coco(tmp_path, content, pictures)), Boxes(), keep_empty=True)
    content["annotations"][0]["segmentation"] = []
    with pytest.raises(UserError, match="have boxes only"):
        training_images(open_annotated(write_coco(tmp_path, content, pictures)), Masks(), keep_empty=False)


def test_every_epoch_shows_every_image_and_a_later_start_shows_the_same(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    order = StepOrder(6, 4, 3)
    whole = [one for batch in batches_from(source, Boxes(), order, 3, range(6), 2) for one in batch]
    late = [one for batch in batches_from(source, Boxes(), order, 3, range(2, 6), 1) for one in batch]
    assert len(whole) == 24 and all(a.image.equal(b.image) for a, b in zip(whole[8:], late, strict=True))

    def number_of(image: torch.Tensor) -> int:
        plain = [source.image(number) for number in range(6)]
        return next(n for n, one in enumerate(plain) if one.equal(image) or one.flip(2).equal(image))

    numbers = [number_of(one.image) for one in whole]
    assert (
        all(sorted(numbers[at : at + 6]) == list(range(6)) for at in range(0, 24, 6)) and numbers[:6] != numbers[6:12]
    )
    assert 0 < sum(not source.image(number_of(one.image)).equal(one.image) for one in whole) < 24


def test_wide_and_tall_images_are_in_separate_steps() -> None:
    chance = torch.Generator().manual_seed(0)
    shape = (torch.rand(200, generator=chance) < 0.7).tolist()
    apart, plain = StepOrder(200, 4, 3, shape), StepOrder(200, 4, 3)
    steps = [apart(step) for step in range(96)]
    assert all(len(step) == 4 for step in steps) and [apart(step) for step in (95, 3, 40)] == [
        steps[95],
        *steps[3:41:37],
    ]
    for first in range(0, 96, 16):
        pairs = [pair for step in steps[first : first + 16] for pair in step]
        assert sorted(pairs) == [pair for step in range(first, first + 16) for pair in plain(step)]
        kinds = [len({shape[image] for _, image in step}) for step in steps[first : first + 16]]
        assert kinds[:-1] == [1] * 15
        assert {shape[image] for step in steps[first : first + 15] for _, image in step} == {False, True}


def test_images_of_one_shape_and_small_sets_keep_the_plain_order() -> None:
    plain = StepOrder(50, 4, 3)
    assert all(StepOrder(50, 4, 3, [same] * 50)(step) == plain(step) for same in (False, True) for step in range(40))
    is_wide = [number % 2 == 0 for number in range(5)]
    for step in range(10):
        assert sorted(StepOrder(5, 4, 3, is_wide)(step)) == StepOrder(5, 4, 3)(step)
        assert sorted(StepOrder(5, 16, 3, is_wide)(step)) == StepOrder(5, 16, 3)(step)


def test_shapes_are_known_without_decoding_images(tmp_path: Path) -> None:
    content, pictures = coco_content(4)
    content["images"][3].update(width=64)
    content["images"][2].update(width=63)
    source = open_annotated(write_coco(tmp_path, content, pictures))  # ids count down
    for picture in tmp_path.rglob("*.png"):
        picture.write_bytes(b"")
    assert wide(source) == [False, False, True, True]
