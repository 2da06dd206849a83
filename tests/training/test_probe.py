"""A glance at the backbone during training: right, and without a trace."""

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import tiny
import torch
from jaxtyping import UInt8
from pretend_gpu import DEVICE, Pretend, pretended
from torch import Tensor

from vantage.data.sources.arrays import Arrays
from vantage.encoders import Encoder, LinearHead, Shared
from vantage.encoding import Work
from vantage.errors import UnreadableImage, UserError
from vantage.learner import Learner
from vantage.training.feed import open_feed
from vantage.training.run import Data, Run
from vantage.training.watching import probe
from vantage.training.watching.probe import knn_so_far

CPU = torch.device("cpu")


def new_learner(run: Run) -> Learner:
    torch.manual_seed(0)
    return Learner(run.encoders, run.branches, images=64, seed=0)


def labels(source: Arrays) -> Iterator[int]:
    return (number for number in map(source.label, range(len(source))) if number is not None)


def with_shuffled_labels(source: Arrays) -> Arrays:
    """The same images under labels that say nothing of them."""
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(len(source))])
    label = np.random.default_rng(5).permutation(np.fromiter(labels(source), int))
    return Arrays(pixels, label, "shuffled")


@pytest.mark.parametrize("role", [None, Shared(Encoder(tiny.TinyBackbone(), LinearHead(8)))], ids=["slow", "shared"])
def test_classes_apart_are_found_and_others_are_not(role: Shared | None):
    run = tiny.tiny_run(role)
    learner, source = new_learner(run), tiny.images(150, 0, noise=3.0)
    assert knn_so_far(learner, run, source, CPU) == 100.0
    assert (
        0.0 < knn_so_far(learner, run, with_shuffled_labels(source), CPU) < 80.0
    )  # a third is chance, of 15 images asked


def test_it_is_the_trained_network_that_is_looked_at():
    run, source = tiny.tiny_run(), tiny.images(60, 0, noise=3.0)
    learner = new_learner(run)
    with torch.no_grad():
        for name, weight in learner.networks.named_parameters():
            if not name.startswith("slow."):
                weight.zero_()
    assert knn_so_far(learner, run, source, CPU) < 60.0, "with all features alike there is nothing to tell classes by"


@pytest.mark.parametrize("training", [True, False])
def test_nothing_is_left_changed(training: bool):
    run, learner = tiny.tiny_run(), new_learner(tiny.tiny_run())
    learner.train(training)
    frozen = next(part for part in learner.networks.modules() if isinstance(part, torch.nn.BatchNorm2d))
    frozen.eval()
    modes = [part.training for part in learner.modules()]
    state = {name: value.clone() for name, value in learner.state_dict().items()}
    random_state = torch.get_rng_state()
    knn_so_far(learner, run, tiny.images(30, 0), CPU)
    assert [part.training for part in learner.modules()] == modes
    assert all(torch.equal(value, state[name]) for name, value in learner.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random_state)
    assert all(weight.grad is None for weight in learner.parameters())


class Torn:
    """Images of which one cannot be decoded."""

    def __init__(self, source: Arrays) -> None:
        self.source, self.classes = source, source.classes

    def __len__(self) -> int:
        return len(self.source)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        if number == 7:
            raise UnreadableImage("7.png", "it is torn")
        return self.source.image(number)

    def label(self, number: int) -> int | None:
        return self.source.label(number)

    def name(self, number: int) -> str:
        return f"{number}.png"

    def fingerprint(self) -> str:
        return "torn"


def test_a_failure_leaves_the_mode_as_it_was():
    run, learner = tiny.tiny_run(), new_learner(tiny.tiny_run())
    learner.train()
    with pytest.raises(UnreadableImage, match="torn"):
        knn_so_far(learner, run, Torn(tiny.images(30, 0)), CPU)
    assert all(part.training for part in learner.modules())


def test_images_without_labels_are_refused_before_any_is_encoded(monkeypatch: pytest.MonkeyPatch):
    run, learner = tiny.tiny_run(), new_learner(tiny.tiny_run())
    monkeypatch.delattr("vantage.training.watching.probe.encode_all")
    pixels = np.zeros((6, 32, 32, 3), np.uint8)
    with pytest.raises(UserError, match="needs labels"):
        knn_so_far(learner, run, Arrays(pixels, None, "nameless"), CPU)
    with pytest.raises(UserError, match="no class has two images"):
        knn_so_far(learner, run, Arrays(pixels[:3], np.arange(3), "alone"), CPU)


def test_images_without_a_label_do_not_count():
    run, source = tiny.tiny_run(), tiny.images(60, 0, noise=3.0)
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(60)])
    label = np.fromiter(labels(source), int)
    noise = np.random.default_rng(1).integers(0, 256, (20, 32, 32, 3), np.uint8)
    partly_labeled = Arrays(np.concatenate([pixels, noise]), np.concatenate([label, np.full(20, -1)]), "mixed")
    assert (
        knn_so_far(new_learner(run), run, partly_labeled, CPU)
        == knn_so_far(new_learner(run), run, source, CPU)
        == 100.0
    )


def test_images_in_memory_are_not_decoded_again():
    run, source = replace(tiny.tiny_run(), batch_size=10), tiny.images(30, 0)
    feed = open_feed(run, source, 0, 1, CPU)
    decoded = feed.decoded(source)
    assert decoded is not source and len(decoded) == len(source) and decoded.label(7) == source.label(7)
    assert all(torch.equal(decoded.image(number), source.image(number)) for number in range(len(source)))
    learner = new_learner(run)
    assert knn_so_far(learner, run, decoded, CPU) == knn_so_far(learner, run, source, CPU)


@pytest.mark.parametrize("data", [Data(resident_bytes=0), Data(resident_side=8)], ids=["streamed", "squares"])
def test_other_images_are_read_from_their_source(data: Data):
    run, source = replace(tiny.tiny_run(), data=data, batch_size=10), tiny.images(30, 0)
    assert open_feed(run, source, 0, 1, CPU).decoded(source) is source


@pytest.mark.parametrize(("memory", "moved"), [(1 << 33, True), (0, False)], ids=["roomy", "full"])
def test_neighbors_are_found_on_the_device_if_there_is_room(memory: int, moved: bool, monkeypatch: pytest.MonkeyPatch):
    run, source = tiny.tiny_run(), tiny.images(60, 0, noise=3.0)
    expected, devices = knn_so_far(new_learner(run), run, source, CPU), list[torch.device]()
    vote = probe.vote
    monkeypatch.setattr(Work, "resolved_device", lambda _: DEVICE)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=memory))
    monkeypatch.setattr("vantage.encoding.check_views", lambda *_: None)
    monkeypatch.setattr("vantage.encoding.check_memory", lambda *_: None)
    monkeypatch.setattr(probe, "vote", lambda bank, *rest: devices.append(bank.device) or vote(bank, *rest))
    with Pretend():
        learner = new_learner(run)
        pretended(learner)
        assert knn_so_far(learner, run, source, DEVICE) == expected
    assert devices == [DEVICE if moved else CPU]
