"""A user's backbone that reads a number while it is built cannot be built on torch's meta device, and is used all the
same."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import small_run, write_images
from tiny import TinyBackbone
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from vantage.composition.codec import allowing
from vantage.encoders import Encoder, with_backbone
from vantage.encoders.heads import LinearHead
from vantage.encoders.weights import build_without_numbers, shapes_only
from vantage.errors import UserError
from vantage.facts.run_facts import facts_of
from vantage.frozen.encoder import load
from vantage.memory import Queue
from vantage.training.loop import train
from vantage.training.run import Run
from vantage.training.start.try_parts import check_groups


@dataclass(frozen=True)
class WithNumbers(TinyBackbone):
    """Reads numbers while it is built, as timm's networks with stochastic depth do."""

    def build(self) -> nn.Module:
        network = super().build()
        assert torch.linspace(0, 1, 3)[1].item() == 0.5
        assert torch.isfinite(next(network.parameters()).sum()).item()
        return network


def run_with_numbers(path: str) -> Run:
    run = small_run("moco_v2", path, 1)
    encoder = replace(run.encoders.encoder, backbone=WithNumbers())  # pyright: ignore
    return replace(run, encoders=replace(run.encoders, encoder=encoder))  # pyright: ignore


@pytest.fixture(scope="module", autouse=True)
def allow_it() -> Iterator[None]:
    with allowing("test_real_numbers"):
        yield


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_images(tmp_path_factory.mktemp("images") / "images.npz")


@pytest.fixture(scope="module")
def folder(path: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained run."""
    folder = tmp_path_factory.mktemp("trained") / "run"
    assert train(run_with_numbers(path), folder).finished
    return folder


def test_groups_are_checked() -> None:
    run = run_with_numbers("")
    check_groups(run)
    with pytest.raises(UserError, match="split 9 images into 2 groups"):
        check_groups(replace(run, batch_size=9))


def test_its_run_is_loaded_and_reported(folder: Path) -> None:
    assert load(folder).width == 12
    (facts,) = facts_of([folder])
    assert facts.width == 128  # of the vectors


def test_another_run_starts_from_it(folder: Path, path: str, tmp_path: Path) -> None:
    assert train(run_with_numbers(path), tmp_path / "again", init=folder).finished


def test_a_head_follows_it() -> None:
    encoder = with_backbone(Encoder(TinyBackbone(20), LinearHead(8)), WithNumbers())
    assert encoder.backbone == WithNumbers()


def test_no_random_number_is_drawn_for_it() -> None:
    before = torch.random.get_rng_state()
    for backbone, device in ((WithNumbers(), "cpu"), (TinyBackbone(), "meta")):
        assert {part.device.type for part in build_without_numbers(backbone.build).parameters()} == {device}
    assert torch.equal(torch.random.get_rng_state(), before)


class Operations(TorchDispatchMode):
    """Keeps the names of torch's operations."""

    def __init__(self) -> None:
        super().__init__()
        self.names = set[str]()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def test_where_there_are_no_numbers_none_is_computed() -> None:
    """Torch takes up to a millisecond for each tensor. What a user's part draws on the CPU is drawn."""
    with Operations() as seen, shapes_only():
        network, queue = TinyBackbone().build(), Queue(64).build(100, 8)
    assert "empty" in seen.names and not {"uniform_", "normal_", "linalg_vector_norm"} & seen.names
    assert all(tensor.is_meta for tensor in (*network.parameters(), queue.vector))
    with shapes_only():
        assert torch.empty(9, device="cpu").uniform_(1.0, 2.0).min() >= 1
        assert nn.functional.normalize(input=torch.ones(2, 4)).is_meta


def test_a_size_that_no_tensor_can_have_is_not_tried_with_numbers() -> None:
    devices: list[str] = []

    def build() -> nn.Module:
        devices.append(torch.empty(0).device.type)
        return nn.Linear(-1, 1)

    with pytest.raises(RuntimeError, match="negative dimension"):
        build_without_numbers(build)
    assert devices == ["meta"]
