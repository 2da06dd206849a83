"""What detectors learn from: which images, in which order, mirrored how."""

from pathlib import Path

import pytest
import torch
from annotated import POINTS, coco_content, small_coco, write_coco

from vantage.detect import Boxes, Keypoints, Masks, example, mirror_order, mirrored, open_annotated
from vantage.detect.examples import batches_from, worth_training
from vantage.errors import UserError


def test_a_mirrored_example_shows_the_mirrored_instances(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    swap = mirror_order(POINTS)
    assert [POINTS[place] for place in swap[:4]] == ["nose", "right_eye", "left_eye", "right_ear"]
    for number in range(len(source)):
        one = example(source, number, Masks())
        turned = mirrored(one, swap)
        assert turned.masks is not None and one.masks is not None and turned.image.equal(one.image.flip(2))
        for box, mask, label in zip(turned.box, turned.masks, turned.label, strict=True):
            rows, columns = mask.nonzero().unbind(1)
            extent = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            assert box.tolist() == [int(value) for value in extent] and int(label) in (1, 2)
        assert mirrored(turned, swap).box.equal(one.box)
    one = example(source, 0, Keypoints(17))
    assert one.points is not None
    turned = mirrored(one, swap)
    assert turned.points is not None
    left, right = POINTS.index("left_eye"), POINTS.index("right_eye")
    assert turned.points[:, left, 0].equal(72 - 1 - one.points[:, right, 0])
    again = mirrored(turned, swap).points
    assert again is not None and again.equal(one.points)


def test_points_that_are_not_labelled_stay_at_the_origin(tmp_path: Path) -> None:
    content, pictures = coco_content(2)
    content["annotations"][1]["keypoints"][:3] = [0, 0, 0]
    source = open_annotated(write_coco(tmp_path, content, pictures))
    points = mirrored(example(source, 0, Keypoints(17)), mirror_order(POINTS)).points
    assert points is not None and points[0, 0].tolist() == [0, 0, 0]


def test_images_without_boxes_are_left_out_or_kept(tmp_path: Path) -> None:
    content, pictures = coco_content(6)
    content["annotations"][0]["iscrowd"] = 1
    source = open_annotated(write_coco(tmp_path, content, pictures))
    left = worth_training(source, Boxes(), keep_empty=False)
    assert {left.name(number) for number in range(len(left))} == {"1.png", "2.png", "3.png", "5.png"}
    assert len(worth_training(source, Boxes(), keep_empty=True)) == 6
    people = worth_training(source, Keypoints(17), keep_empty=False)
    assert {people.name(number) for number in range(len(people))} == {"1.png", "3.png", "5.png"}
    crowd = next(number for number in range(6) if source.name(number) == "0.png")
    assert len(example(source, crowd, Masks()).label) == 0
    for one in content["annotations"]:
        one["iscrowd"] = 1
    with pytest.raises(UserError, match="none of the 6 training images has boxes"):
        worth_training(open_annotated(write_coco(tmp_path, content, pictures)), Boxes(), keep_empty=True)
    content["annotations"][0]["segmentation"] = []
    with pytest.raises(UserError, match="have boxes only"):
        worth_training(open_annotated(write_coco(tmp_path, content, pictures)), Masks(), keep_empty=False)


def test_every_epoch_shows_every_image_and_a_later_start_shows_the_same(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    whole = [one for batch in batches_from(source, Boxes(), 4, 3, range(6), 2) for one in batch]
    late = [one for batch in batches_from(source, Boxes(), 4, 3, range(2, 6), 1) for one in batch]
    assert len(whole) == 24 and all(a.image.equal(b.image) for a, b in zip(whole[8:], late, strict=True))

    def known(image: torch.Tensor) -> int:
        plain = [source.image(number) for number in range(6)]
        return next(n for n, one in enumerate(plain) if one.equal(image) or one.flip(2).equal(image))

    seen = [known(one.image) for one in whole]
    assert all(sorted(seen[at : at + 6]) == list(range(6)) for at in range(0, 24, 6)) and seen[:6] != seen[6:12]
    assert 0 < sum(not source.image(known(one.image)).equal(one.image) for one in whole) < 24
