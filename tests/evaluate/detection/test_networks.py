"""Detectors: the backbone's weights in them, frozen and trained parts, and resumed training."""

import dataclasses
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from annotated import small_coco
from shared_detectors import NARROW
from tiny import tiny_run

from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.encoders.backbones.resnet import Backbone
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.detection import (
    COCO_SIZES,
    SCHEDULES,
    VOC_SIZES,
    Boxes,
    DetectionC4,
    DetectionSchedule,
    DetectorTraining,
    FourthStage,
    Keypoints,
    Masks,
    Pyramid,
    Sizes,
    detect,
    example,
    open_annotated,
)
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.progress import QuietProgress

SIZES = Sizes((32,), 32, 48, (8, 16, 24, 32, 48), regions=4, proposals=8)


def resnet(choice: Backbone | None = None, seed: int = 0) -> FrozenEncoder:
    role = Shared(Encoder(choice or NARROW, LinearHead(8)))
    encoder = random_encoder(dataclasses.replace(tiny_run(), encoders=role), seed)
    with torch.no_grad():
        for value in encoder.backbone.buffers():
            if value.is_floating_point():
                value.add_(0.02 * torch.rand_like(value))
    return encoder


@pytest.mark.parametrize(
    ("choice", "network"),
    [
        (ResNet(18), Pyramid()),
        (ResNet(18, small=True), FourthStage()),
        pytest.param(ResNet(50, groups=32, width_per_group=4), Pyramid(), marks=pytest.mark.slow),
        pytest.param(ResNet(50), FourthStage(), marks=pytest.mark.slow),
    ],
)
def test_every_weight_of_the_checkpoint_is_in_the_detector(choice: ResNet, network: Any) -> None:
    encoder = resnet(choice)
    detector = network.build(encoder, 3, Masks(), SIZES)
    own = detector.model.state_dict()
    names = encoder.backbone.state_dict()
    assert set(detector.model_names) == set(names) and len(set(detector.model_names.values())) == len(names)
    for name, value in names.items():
        assert torch.equal(own[detector.model_names[name]], value), name
    with torch.no_grad():
        own[detector.model_names["layer4.0.conv1.weight"]][0, 0, 0, 0] += 1e-6
    with pytest.raises(RuntimeError, match="layer4.0.conv1.weight of the backbone is not in the detector"):
        detector.check_copied(encoder.backbone)


def test_the_pyramid_sees_what_the_backbone_sees() -> None:
    encoder = resnet()
    model = Pyramid().build(encoder, 3, Boxes(), SIZES).model.eval()
    images = torch.rand(1, 3, 64, 64)
    body: Any = model.backbone.get_submodule("body")
    pooled = body(images)["3"].mean((2, 3))
    assert torch.allclose(pooled, encoder.backbone.eval()(images), atol=1e-5)
    detector = FourthStage().build(encoder, 3, Boxes(), SIZES)
    detector.model.eval()
    trunk: Any = detector.model.backbone
    head: Any = detector.model.roi_heads.box_head.stage.layer4  # pyright: ignore
    assert torch.allclose(head(trunk(images)["0"]).mean((2, 3)), encoder.backbone(images), atol=1e-5)


def test_heads_are_those_of_the_infomin_release() -> None:
    plain, with_norms = (
        Pyramid(new_norm=False, normed_heads=heads).build(resnet(), 3, Masks(), SIZES).model.roi_heads
        for heads in (False, True)
    )

    def shapes(part: Any) -> list[tuple[int, ...]]:
        return [tuple(own.shape) for own in part.parameters()]

    def norms(part: Any) -> int:
        return sum(isinstance(own, torch.nn.BatchNorm2d) for own in part.modules())

    assert shapes(plain.box_head) == [(1024, 256 * 49), (1024,), (1024, 1024), (1024,)] and norms(plain) == 0
    assert shapes(with_norms.box_head) == [(256, 256, 3, 3), (256,), (256,)] * 4 + [(1024, 256 * 49), (1024,)]
    assert shapes(with_norms.mask_head) == [(256, 256, 3, 3), (256,), (256,)] * 4 and norms(with_norms) == 8
    assert with_norms.box_predictor.cls_score.in_features == 1024  # pyright: ignore


def step(detector: Any, source: Any, output: Any) -> dict[str, torch.Tensor]:
    detector.train_mode()
    optimizer = torch.optim.SGD([own for own in detector.model.parameters() if own.requires_grad], lr=0.01)
    batch = [example(source, number, output) for number in (2, 3)]
    images = [one.image.float() / 255 for one in batch]
    losses = detector.model(images, [one.target(torch.device("cpu")) for one in batch])
    torch.stack(list(losses.values())).sum().backward()
    optimizer.step()
    return losses


@pytest.mark.parametrize(
    ("network", "moves"),
    [
        (Pyramid(5, False), ()),
        (Pyramid(2), ("layer2", "layer3", "layer4")),
        (FourthStage(5, False), ("layer4",)),
        (Pyramid(), ("conv1", "bn1", "layer1", "layer2", "layer3", "layer4")),
    ],
)
def test_frozen_parts_stay_the_same_to_the_bit(tmp_path: Path, network: Any, moves: tuple[str, ...]) -> None:
    encoder, source = resnet(), open_annotated(small_coco(tmp_path))
    detector = network.build(encoder, 2, Boxes(), SIZES)
    step(detector, source, Boxes())
    own, changed_parts = detector.model.state_dict(), set()
    for name, value in encoder.backbone.state_dict().items():
        if not torch.equal(own[detector.model_names[name]], value):
            changed_parts.add(name.split(".")[0])
            assert network.frozen_stages < 5 or ("bn" not in name and "downsample.1" not in name)
    assert changed_parts == set(moves)


@pytest.mark.slow
def test_every_output_has_losses_and_detections(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    for network, output, extra in (
        (Pyramid(), Masks(), "loss_mask"),
        (Pyramid(), Keypoints(17), "loss_keypoint"),
        (FourthStage(), Masks(), "loss_mask"),
    ):
        classes = 1 if isinstance(output, Keypoints) else 2
        encoder = resnet()
        detector = network.build(encoder, classes, output, SIZES)
        people = [n for n in range(len(source)) if source.instances(n).label.tolist() == [1]]
        assert people
        batch = [example(source, number, output) for number in people[:2]]
        if classes == 1:
            batch = [dataclasses.replace(one, label=torch.ones_like(one.label)) for one in batch]
        detector.train_mode()
        losses = detector.model(
            [one.image.float() / 255 for one in batch], [one.target(torch.device("cpu")) for one in batch]
        )
        assert extra in losses and all(bool(value.isfinite()) and value > 0 for value in losses.values())
        detector.model.roi_heads.score_thresh = 0.0  # pyright: ignore
        detections = detect(detector, source, output, Work("cpu"), "tiny")[0]
        height, width = source.size(0)
        assert (
            len(detections.score) and bool((detections.box[:, 2] <= width).all()) and int(detections.label.min()) >= 0
        )
        if isinstance(output, Masks):
            assert detections.masks is not None and {(one.height, one.width) for one in detections.masks} == {
                (height, width)
            }
        else:
            assert detections.points is not None and detections.points.shape[1:] == (17, 3)


def test_images_are_decoded_in_threads_and_tested_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_annotated(small_coco(tmp_path, images=7))
    torch.manual_seed(1)
    detector = Pyramid().build(resnet(), 2, Boxes(), SIZES)
    detector.model.roi_heads.score_thresh = 0.0  # pyright: ignore
    detector.eval_mode()
    threads: set[str] = set()
    decode = type(source).image

    def image(self: Any, number: int) -> torch.Tensor:
        threads.add(threading.current_thread().name)
        return decode(self, number)

    with torch.no_grad():
        expected = [detector.model([source.image(number).float() / 255])[0] for number in range(7)]
    monkeypatch.setattr(type(source), "image", image)
    counts: list[int] = []

    class Counts(QuietProgress):
        def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
            counts.append(completed)

    for workers in (1, 3):
        detections = detect(detector, source, Boxes(), Work("cpu", num_workers=workers, progress=Counts()), "tiny")
        for one, other in zip(detections, expected, strict=True):
            assert len(one.score) and torch.equal(one.box, other["boxes"]) and torch.equal(one.score, other["scores"])
            assert torch.equal(one.label, other["labels"] - 1)
    assert counts == 2 * list(range(1, 8)) and threading.main_thread().name not in threads


def course(folder: Path, steps: int, **others: Any) -> DetectorTraining:
    schedule = DetectionSchedule(steps, (steps - 1,), 1, batch_size=2, learning_rate=0.01)
    return DetectorTraining(schedule, 5, 2, folder / "kept.safetensors", **others)


@pytest.mark.slow
def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path: Path) -> None:
    encoder, source = resnet(), open_annotated(small_coco(tmp_path))

    def build_detector() -> Any:
        torch.manual_seed(1)
        return Pyramid().build(encoder, 2, Boxes(), SIZES)

    whole, work = build_detector(), Work("cpu")
    expected = course(tmp_path / "whole", 4)(whole, source, Boxes(), work, "tiny")

    class Stopped(Exception):
        pass

    class Stop(QuietProgress):
        def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
            if completed == 3:
                raise Stopped

    part = course(tmp_path / "part", 4, minutes=0.0)
    with pytest.raises(Stopped):
        part(build_detector(), source, Boxes(), Work("cpu", progress=Stop()), "tiny")
    again = build_detector()
    rest = part(again, source, Boxes(), work, "tiny")
    assert rest == expected and len(rest) == 4
    for name, value in whole.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value), name
    assert part.state_file.is_file()
    part.forget()
    assert not part.state_file.exists()


def test_schedules_are_the_papers_and_follow_the_linear_rule() -> None:
    assert [(one.steps, one.milestones) for one in SCHEDULES.values()] == [
        (90_000, (60_000, 80_000)),
        (180_000, (120_000, 160_000)),
        (540_000, (480_000, 520_000)),
        (24_000, (18_000, 22_000)),
    ]
    assert {name: (one.warmup_steps, one.short_sides) for name, one in SCHEDULES.items()} == {
        **dict.fromkeys(("1x", "2x", "6x"), (1000, (640, 672, 704, 736, 768, 800))),
        "voc": (100, (480, 512, 544, 576, 608, 640, 672, 704, 736, 768, 800)),
    }
    one = SCHEDULES["voc"]
    assert one.learning_rate_at(0) == pytest.approx(2e-5) and one.learning_rate_at(50) == pytest.approx(0.02 * 0.5005)
    assert [one.learning_rate_at(at) for at in (100, 17_999, 18_000, 22_000)] == pytest.approx(
        [0.02, 0.02, 0.002, 0.0002]
    )
    half = SCHEDULES["1x"].for_batch_size(8)
    assert (half.steps, half.milestones, half.learning_rate, half.batch_size) == (180_000, (120_000, 160_000), 0.01, 8)
    short = SCHEDULES["1x"].in_steps(90)
    assert (short.steps, short.milestones, short.warmup_steps, short.learning_rate) == (90, (60, 80), 9, 0.02)


def test_a_schedule_sets_the_short_sides_unless_others_are_given() -> None:
    voc, coco = DetectionC4(schedule="voc"), DetectionC4()
    assert (
        voc.scaled_schedule() == SCHEDULES["voc"]
        and voc.scheduled_sizes() == VOC_SIZES
        and voc.scheduled_sizes().test_side == 800
    )
    assert coco.scaled_schedule() == SCHEDULES["1x"] and coco.scheduled_sizes() == COCO_SIZES
    assert DetectionC4(schedule="voc", sizes=Sizes((96,), 96)).scheduled_sizes().short_sides == (96,)
    assert DetectionC4(schedule="voc", batch_size=8, steps=10).scaled_schedule().short_sides == VOC_SIZES.short_sides
    with pytest.raises(UserError, match="long_side is 700, less than a shorter side, 800;"):
        DetectionC4(sizes=Sizes(test_side=400, long_side=700))
    detector = FourthStage().build(resnet(), 2, Boxes(), Sizes())
    detector.train_mode()
    assert vars(detector.model.transform)["min_size"] == COCO_SIZES.short_sides
    detector.eval_mode()
    assert vars(detector.model.transform)["min_size"] == (800,)


def test_unsuitable_backbones_are_refused() -> None:
    with pytest.raises(UserError, match="built on ResNets"):
        Pyramid().build(random_encoder(tiny_run()), 2, Boxes(), SIZES)
    several = dataclasses.replace(resnet(), choice=None)
    with pytest.raises(UserError, match="--network 0"):
        Pyramid().build(several, 2, Boxes(), SIZES)
    with pytest.raises(UserError, match="sees 1"):
        gray = resnet(ResNet(18, in_channels=1))
        view = dataclasses.replace(gray.view, channels=(0,))
        FourthStage().build(dataclasses.replace(gray, view=view), 2, Boxes(), SIZES)
    with pytest.raises(UserError, match="need a feature pyramid"):
        FourthStage().build(resnet(), 1, Keypoints(17), SIZES)
    for wrong in (
        lambda: Pyramid(6),
        lambda: Sizes(anchors=(1, 2)),
        lambda: Sizes(long_side=9),
        lambda: Sizes(regions=0),
    ):
        with pytest.raises(UserError, match="detection:"):
            wrong()
