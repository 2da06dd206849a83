"""Detectors trained on one process or several, for `evaluate/detection/test_shared_detectors.py`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from annotated import small_coco
from tiny import cpu_work, tiny_run
from torch import Tensor

from vantage import processes
from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.evaluate.protocols.detection import (
    Cascade,
    CascadeInstances,
    Detection,
    DetectionC4,
    Detections,
    FourthStage,
    InstancesC4,
    InstanceSegmentation,
    KeypointDetection,
    Pyramid,
    Sizes,
    open_annotated,
)
from vantage.evaluate.protocols.detection.detector_protocol import DetectorProtocol
from vantage.evaluate.protocols.detection.examples import batches_from, training_images
from vantage.evaluate.protocols.detection.order import StepOrder
from vantage.evaluate.protocols.detection.shared_steps import SharedSteps
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource
from vantage.evaluate.protocols.detection.training import detect, torch_seed
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.processes.sharing import own_slice, sum_gradients

NARROW = ResNet(18, width_multiplier=0.125)
"""A backbone for detectors: what is compared does not depend on its width, and the full one takes ten times as long."""
SIZES = Sizes((32, 40), 32, 48, (8, 16, 24, 32, 48), regions=8, proposals=10)
BATCH = 3  # two processes have unequal shares of it
PROTOCOLS = (
    Detection(sizes=SIZES, network_on=Pyramid(frozen_stages=1)),
    InstanceSegmentation(sizes=SIZES, network_on=Pyramid(frozen_stages=1, normed_heads=True)),
    InstancesC4(sizes=SIZES, network_on=FourthStage(5)),
    CascadeInstances(sizes=SIZES, network_on=Cascade(Pyramid(frozen_stages=1))),
    KeypointDetection(sizes=SIZES, network_on=Pyramid(frozen_stages=1)),
)
WHOLE = DetectionC4(sizes=SIZES, steps=2, batch_size=BATCH, precise_batches=1, learning_rate=0.001)


def shared(folder: Path) -> None:
    """Write the results of this process."""
    torch.save(results_of(folder / "shared"), folder / f"{processes.rank()}.pt")


def results_of(folder: Path) -> dict[str, Any]:
    """Losses, gradients, statistics, detections and measures, as computed by this process."""
    train, test = (open_annotated(str(small_coco(folder / str(processes.rank()), *kind))) for kind in SETS)
    torch.manual_seed(0)
    encoder = random_encoder(replace(tiny_run(), encoders=Shared(Encoder(NARROW, LinearHead(8)))))
    results: dict[str, Any] = {
        protocol.name: train_and_detect(protocol, encoder, train, folder) for protocol in PROTOCOLS
    }
    outcome = WHOLE(encoder, train, test, cpu_work(folder))
    results["whole"] = {"losses": outcome.details["losses"], **outcome.measures}
    return results


SETS: tuple[tuple[Any, ...], ...] = (("train", 6), ("val", 3, 1))


def train_and_detect(
    protocol: DetectorProtocol, encoder: FrozenEncoder, train: AnnotatedSource, folder: Path
) -> dict[str, Any]:
    """Take two steps in float64 without an optimizer; returns losses, norms of gradients, BatchNorm's statistics, and
    what is detected afterwards."""
    device = torch.device("cpu")
    output, train, _ = protocol.prepare(train, train)
    train = training_images(train, output, protocol.keep_empty)
    with torch_seed(7, device):
        detector = protocol.network_on.build(encoder, len(train.classes), output, SIZES)
    detector.model.double()
    detector.train_mode()
    together = SharedSteps(detector, BATCH) if processes.count() > 1 else None
    order, losses = StepOrder(len(train), BATCH, 0), []
    for step, batch in enumerate(batches_from(train, output, lambda n: order(n)[own_slice(BATCH)], 0, range(2), 1)):
        images = [one.image.double() / 255 for one in batch]
        targets = [{**one.target(device), "boxes": one.box.double()} for one in batch]
        with torch_seed(step, device):
            if together is None:
                each = detector.model(images, targets)
                loss = torch.stack(list(each.values())).sum()
            else:
                with together.one_step():
                    each = detector.model(images, targets)
                loss = together.part(each)
        losses.append(processes.total(loss.detach()))
        loss.backward()
    sum_gradients(detector.model.parameters())
    gradients = {name: value.grad.norm() for name, value in detector.model.named_parameters() if value.grad is not None}
    statistics = {name: value.clone() for name, value in detector.model.named_buffers() if "running" in name}
    detector.model.float()
    detections = detect(detector, train, output, cpu_work(folder), "tiny")
    boxes = [(one.box, one.label, one.score, str(one.masks), points_of(one)) for one in detections]
    return {"losses": losses, "gradients": gradients, "statistics": statistics, "boxes": boxes}


def points_of(one: Detections) -> Tensor:
    """Columns and rows of the keypoints, if any."""
    return torch.zeros(0) if one.points is None else one.points[..., :2]
