"""Cascade R-CNN: three heads, each on the boxes of the one before, against slow loops."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from annotated import small_coco
from test_networks import SIZES, resnet, step
from torch import Tensor

from vantage.errors import UserError
from vantage.evaluate.protocols.detection import Cascade, Keypoints, Masks, Pyramid, open_annotated
from vantage.evaluate.protocols.detection.cascade import CascadeHeads, box_loss

SHAPES = [(48, 64), (40, 40)]


@pytest.fixture(scope="module")
def heads() -> CascadeHeads:
    torch.manual_seed(0)
    cascade_heads = Cascade(Pyramid(new_norm=False)).build(resnet(), 3, Masks(), SIZES).model.roi_heads
    assert isinstance(cascade_heads, CascadeHeads)
    for predictor in cascade_heads.predictors:  # boxes that move
        predictor.get_submodule("box").get_parameter("weight").data.normal_(0, 0.3)
    return cascade_heads.eval()


def features() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    maps = {str(level): torch.randn(2, 256, 16 >> level, 16 >> level, generator=generator) for level in range(4)}
    return maps | {"pool": torch.randn(2, 256, 1, 1, generator=generator)}


def regions() -> list[Tensor]:
    one = [[0.0, 0.0, 10.0, 12.0], [5.0, 6.0, 40.0, 45.0], [30.0, 3.0, 64.0, 30.0]]
    return [torch.tensor(one), torch.tensor(one[:2]).clamp(max=40)]


def decode_box(region: list[float], code: list[float], scale: float, shape: tuple[int, int]) -> list[float]:
    """A box from its code, one number after the other (Girshick et al., arXiv 1311.2524, appendix C)."""
    left, top, right, bottom = region
    wide, high = right - left, bottom - top
    x, y = left + wide / 2 + code[0] / scale * wide, top + high / 2 + code[1] / scale * high
    most = math.log(1000 / 16)
    wide, high = (side * math.exp(min(c / scale * 2, most)) for side, c in zip((wide, high), code[2:], strict=True))
    across = [min(max(value, 0), shape[1]) for value in (x - wide / 2, x + wide / 2)]
    down = [min(max(value, 0), shape[0]) for value in (y - high / 2, y + high / 2)]
    return [across[0], down[0], across[1], down[1]]


@torch.no_grad()
def test_boxes_go_through_three_heads_and_scores_are_their_mean(heads: CascadeHeads) -> None:
    maps, own = features(), [region.tolist() for region in regions()]
    scores: list[list[Tensor]] = [[] for _ in range(5)]
    for stage, scale in enumerate((10.0, 20.0, 30.0)):
        pooled = heads.heads.box_roi_pool(maps, [torch.tensor(each) for each in own], SHAPES)
        logits, codes = heads.predictors[stage](heads.box_heads[stage](pooled))
        for row, each in enumerate(logits.softmax(1)):
            scores[row].append(each)
        flat = iter(codes.tolist())
        own = [
            [decode_box(region, next(flat), scale, shape) for region in each]
            for each, shape in zip(own, SHAPES, strict=True)
        ]
    heads.heads.score_thresh, heads.heads.nms_thresh = 0.0, 1.0
    detections, losses = heads(maps, regions(), SHAPES)
    assert losses == {} and [len(each["boxes"]) for each in detections] == [9, 6]
    row = 0
    for each, boxes in zip(detections, own, strict=True):
        assert each["masks"].shape[1:] == (1, 28, 28)
        expected = []
        for box in boxes:
            mean = torch.stack(scores[row]).mean(0)
            expected += [(float(mean[label]), label, box) for label in (1, 2, 3)]
            row += 1
        expected.sort(key=lambda one: -one[0])
        torch.testing.assert_close(each["scores"], torch.tensor([score for score, _, _ in expected]))
        assert each["labels"].tolist() == [label for _, label, _ in expected]
        torch.testing.assert_close(each["boxes"], torch.tensor([box for _, _, box in expected]), rtol=1e-4, atol=1e-3)


def test_each_head_asks_for_more_overlap(heads: CascadeHeads) -> None:
    rows = torch.tensor([[0.0, 0.0, 10.0, height] for height in (4.5, 5.5, 6.5, 7.5)])
    targets = [
        {"boxes": torch.tensor([[50.0, 50.0, 60.0, 60.0], [0.0, 0.0, 10.0, 10.0]]), "labels": torch.tensor([3, 2])},
        {"boxes": torch.zeros(0, 4), "labels": torch.zeros(0, dtype=torch.int64)},
    ]
    for stage, expected in enumerate(([0, 2, 2, 2], [0, 0, 2, 2], [0, 0, 0, 2])):
        matches, labels = heads._match(stage, [rows, rows], targets)
        assert labels[0].tolist() == expected and labels[1].tolist() == [0] * 4
        assert all(number == 1 for number, label in zip(matches[0], expected, strict=True) if label)


def test_a_third_of_the_gradient_reaches_the_features(heads: CascadeHeads) -> None:
    gradients = []
    for with_scale in (True, False):
        maps = {name: value.requires_grad_() for name, value in features().items()}
        if with_scale:
            logits, _ = heads._predict(1, maps, regions(), SHAPES)
        else:
            logits, _ = heads.predictors[1](heads.box_heads[1](heads.heads.box_roi_pool(maps, regions(), SHAPES)))
        logits.square().sum().backward()
        gradients.append(maps["0"].grad)
    torch.testing.assert_close(3 * gradients[0], gradients[1])


def test_the_loss_of_boxes_counts_regions_with_an_instance() -> None:
    codes, targets = torch.randn(5, 4), torch.randn(5, 4)
    label, total = torch.tensor([0, 2, 1, 0, 3]), 0.0
    for row in (1, 2, 4):
        for ours, theirs in zip(codes[row].tolist(), targets[row].tolist(), strict=True):
            gap = abs(ours - theirs)
            total += gap**2 / 2 * 9 if gap < 1 / 9 else gap - 1 / 18
    assert float(box_loss(codes, targets, label)) == pytest.approx(total / 5, rel=1e-5)
    assert float(box_loss(codes[:0], targets[:0], label[:0])) == 0


@pytest.mark.parametrize("normed_heads", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_part_of_a_cascade_learns(normed_heads: bool, tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    network = Cascade(Pyramid(frozen_stages=2, normed_heads=normed_heads))
    detector = network.build(resnet(), len(source.classes), Masks(), SIZES)
    losses = step(detector, source, Masks())
    heads = {f"loss_{part}_{stage}" for part in ("classifier", "box_reg") for stage in (1, 2, 3)}
    assert set(losses) == heads | {"loss_mask", "loss_objectness", "loss_rpn_box_reg"}
    assert all(loss.isfinite() for loss in losses.values())
    parts: Any = detector.model.roi_heads
    gradients = [part.get_parameter("weight").grad for each in parts.predictors for part in (each.score,)]
    assert all(gradient is not None and bool(gradient.any()) for gradient in gradients)
    assert all(own.grad is None for frozen in detector.frozen_parts for own in frozen.parameters())
    proposals: Any = detector.model.rpn
    assert proposals._post_nms_top_n["training"] == 2 * SIZES.proposals


def test_keypoints_have_no_cascade() -> None:
    with pytest.raises(UserError, match="for keypoints use the protocol keypoints"):
        Cascade().build(resnet(), 1, Keypoints(17), SIZES)
