"""Detectors on a CUDA device: all train and score, losses are those of the CPU, stopped training resumes."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from annotated import coco_content, small_coco, write_coco
from tiny import cpu_work, tiny_run

from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.evaluate.protocols.detection import (
    DETECTORS,
    Boxes,
    DetectionSchedule,
    DetectorTraining,
    FourthStage,
    KeypointDetection,
    Keypoints,
    Masks,
    Pyramid,
    Sizes,
    example,
    open_annotated,
)
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.progress import QuietProgress
from vantage.storage.state import StateFile

SIZES = Sizes((48,), 48, 64, (8, 16, 24, 32, 48), regions=8, proposals=20)
ALL_REGIONS = 1 << 20  # more regions than there are: none is drawn, so that generators do not matter


def random_network() -> FrozenEncoder:
    return random_encoder(replace(tiny_run(), encoders=Shared(Encoder(ResNet(18), LinearHead(8)))))


def judge_on(device: str, folder: Path, kind: Any) -> Any:
    """Two steps, and the detections after them."""
    source = open_annotated(small_coco(folder))
    protocol = kind(steps=2, batch_size=2, precise_batches=1, sizes=SIZES)
    return protocol(random_network(), source, source, replace(cpu_work(folder), device=device))


def losses_on(device: str, folder: Path, network: Any, output: Any) -> dict[str, float]:
    """The losses of all regions of two images, in float64, where no weight is random."""
    torch.manual_seed(0)
    source = open_annotated(write_coco(folder, *coco_content(4)))
    detector = network.build(random_network(), 2, output, replace(SIZES, regions=ALL_REGIONS))
    detector.model.rpn.fg_bg_sampler.batch_size_per_image = ALL_REGIONS
    detector.model.to(device, torch.float64)
    detector.train_mode()
    batch = [example(source, number, output) for number in (0, 2)]  # ids count down: two persons
    assert all(len(one.label) for one in batch)
    images = [one.image.to(device).double() / 255 for one in batch]
    losses = detector.model(images, [one.target(torch.device(device)) for one in batch])
    return {name: float(value.detach()) for name, value in losses.items()}


def losses_until_stop(device: str, folder: Path) -> tuple[list[float], list[float]]:
    """The losses of a training in its saved state, and at its end."""
    source = open_annotated(small_coco(folder))
    schedule = DetectionSchedule(4, (3,), 1, batch_size=2, learning_rate=0.01)
    work = replace(cpu_work(folder), device=device)

    class Stopped(Exception):
        pass

    class Stop(QuietProgress):
        def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
            if completed == 3:
                raise Stopped

    def losses(progress: QuietProgress) -> list[float]:
        torch.manual_seed(1)
        detector = FourthStage().build(random_network(), 2, Boxes(), SIZES)
        course = DetectorTraining(schedule, 5, 1, folder / "kept", minutes=0.0)
        return course(detector, source, Boxes(), replace(work, progress=progress), "tiny")

    with pytest.raises(Stopped):
        losses(Stop())
    state = StateFile(folder / "kept").read()
    assert state is not None
    return state.facts["losses"], losses(QuietProgress())


@pytest.mark.gpu
@pytest.mark.parametrize("kind", DETECTORS, ids=lambda kind: kind.name)
def test_every_protocol_trains_and_scores(tmp_path: Path, kind: Any) -> None:
    outcome = judge_on("cuda", tmp_path, kind)
    assert len(outcome.details["losses"]) == 2 and all(map(math.isfinite, outcome.details["losses"]))
    assert outcome.measures and all(0 <= value <= 100 for value in outcome.measures.values())
    assert outcome.train_images == (3 if kind is KeypointDetection else 5)


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("network", "output"),
    [(Pyramid(), Boxes()), (FourthStage(), Masks()), (Pyramid(normed_heads=True), Masks()), (Pyramid(), Keypoints(17))],
    ids=str,
)
def test_losses_are_those_of_the_cpu(tmp_path: Path, network: Any, output: Any) -> None:
    expected, actual = losses_on("cpu", tmp_path, network, output), losses_on("cuda", tmp_path, network, output)
    assert actual == pytest.approx(expected, rel=1e-5) and "loss_box_reg" in actual


@pytest.mark.gpu
def test_a_stopped_training_resumes_with_its_momentum(tmp_path: Path) -> None:
    first_losses, again = losses_until_stop("cuda", tmp_path)
    assert len(first_losses) == 2 and again[:2] == first_losses and len(again) == 4 and all(map(math.isfinite, again))
