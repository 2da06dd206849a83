"""A network trained on labels for seconds, frozen in a detector, ranks above a random one on scenes it has not seen."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from annotated import write_coco
from tiny import cpu_work, tiny_run
from torch import nn

from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.evaluate.protocols.detection import AnnotatedSource, Detection, Pyramid, Sizes, open_annotated
from vantage.frozen.encoder import FrozenEncoder, random_encoder

DIGITS, SIDE, LABELED, SHOWN, HELD = 5, 48, 1800, 30, 60
RUN = replace(tiny_run(), encoders=Shared(Encoder(ResNet(18), LinearHead(8))))


def place_digits(digits: np.ndarray, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """Each digit, on a square of 32 pixels, at a random position on noise; and the squares' upper left corners."""
    chance = np.random.default_rng(seed)
    pictures = list(chance.integers(60, 200, (len(digits), SIDE, SIDE, 3), dtype=np.uint8))
    corners = chance.integers(0, SIDE - 32 + 1, (len(digits), 2))
    for picture, digit, (left, top) in zip(pictures, digits, corners, strict=True):
        picture[top : top + 32, left : left + 32] = digit[:, :, None]
    return pictures, corners


def supervised(start: FrozenEncoder, digits: np.ndarray, label: np.ndarray) -> FrozenEncoder:
    """The encoder after one epoch of cross-entropy with the labels, half of the pictures mirrored."""
    torch.manual_seed(0)
    backbone = copy.deepcopy(start.backbone).train().requires_grad_(True)
    network = nn.Sequential(backbone, nn.Linear(start.width, DIGITS))
    optimizer = torch.optim.AdamW(network.parameters())
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-3, total_steps=len(digits) // 30)
    pixels = torch.from_numpy(np.stack(place_digits(digits, 7)[0])).permute(0, 3, 1, 2).contiguous()
    for rows in torch.randperm(len(digits)).split(30):
        views = start.view.finish(pixels[rows])
        views = torch.where(torch.rand(len(rows), 1, 1, 1) < 0.5, views.flip(3), views)
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(views), torch.from_numpy(label)[rows]).backward()
        optimizer.step()
        schedule.step()
    return replace(start, backbone=backbone.eval().requires_grad_(False), name="supervised")


def scenes(folder: Path, digits: np.ndarray, label: np.ndarray, seed: int) -> AnnotatedSource:
    """The placed digits as a COCO file."""
    pictures, corners = place_digits(digits, seed)
    images, annotations = [], []
    for number, (own, (left, top)) in enumerate(zip(label.tolist(), corners.tolist(), strict=True), 1):
        images.append({"id": number, "file_name": f"{number}.png", "height": SIDE, "width": SIDE})
        box = {"bbox": [left, top, 32, 32], "area": 32 * 32, "iscrowd": 0}
        annotations.append({"id": number, "image_id": number, "category_id": own + 1, **box})
    categories = [{"id": number + 1, "name": str(number)} for number in range(DIGITS)]
    content = {"images": images, "categories": categories, "annotations": annotations}
    return open_annotated(write_coco(folder, content, pictures))


@pytest.mark.slow
def test_a_supervised_network_ranks_above_a_random_one(shared_data: Path, tmp_path: Path) -> None:
    arrays = np.load(shared_data / "mnist.npz")
    some = np.flatnonzero(arrays["y_train"] < DIGITS)[: LABELED + SHOWN + HELD]
    digits, label = np.pad(arrays["x_train"][some], ((0, 0), (2, 2), (2, 2))), arrays["y_train"][some].astype(np.int64)
    labeled_part, held_out_part = slice(LABELED, LABELED + SHOWN), slice(LABELED + SHOWN, None)
    train, test = (
        scenes(tmp_path / str(part.start), digits[part], label[part], part.start)
        for part in (labeled_part, held_out_part)
    )
    sizes = Sizes((SIDE,), SIDE, 64, (24, 32, 32, 32, 32), regions=8, proposals=10)
    protocol = Detection(
        steps=50, batch_size=2, learning_rate=0.16, precise_batches=5, sizes=sizes, network_on=Pyramid(5)
    )
    start = random_encoder(RUN)
    lower, higher = (
        protocol(encoder, train, test, cpu_work(tmp_path)).measures["AP50"]
        for encoder in (start, supervised(start, digits[:LABELED], label[:LABELED]))
    )
    assert higher > lower + 8, (lower, higher)
