"""A course of view learning: what it writes, that it may be interrupted, and what it refuses."""

import json
import math
import os
import re
import shutil
import signal
from dataclasses import replace
from functools import partialmethod
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from vantage.encoders import Convolutions
from vantage.errors import UserError
from vantage.progress import QuietProgress
from vantage.studies.view_learning import (
    LEARNINGS,
    Alternately,
    ByStatistics,
    Jointly,
    LearnedViews,
    Rates,
    ViewLearning,
    epochs_done,
    learn,
    read_learning,
    semi_supervised,
    supervised,
    unsupervised,
)
from vantage.studies.view_learning.images import LearningImages
from vantage.training.run import Data
from vantage.views import Flow, RealNVP, VolumePreserving, YDbDr

IMAGES, SIZE, CLASSES = 60, 8, 3
by_preset = pytest.mark.parametrize("preset", LEARNINGS, ids=lambda preset: preset.__name__)
by_turns = pytest.mark.parametrize("updates", [Alternately(), Jointly()], ids=repr)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    chance = np.random.default_rng(0)
    label = np.arange(IMAGES) % CLASSES
    color = chance.uniform(40, 215, (CLASSES, 1, 1, 3))[label]
    pixels = (color + chance.normal(0, 40, (IMAGES, SIZE, SIZE, 3))).clip(0, 255).astype(np.uint8)
    file = tmp_path_factory.mktemp("images") / "images.npz"
    np.savez(file, images=pixels, labels=label)
    np.savez(file.with_name("unlabeled.npz"), images=pixels)
    return str(file)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path_factory.mktemp("cache")))


def small(preset, path: str, **fields) -> ViewLearning:
    base = preset(SIZE, (Convolutions((4, 8), 1), Convolutions((4, 8), 2)))
    changes = {"epochs": 2, "batch_size": 12, "labeled_batch_size": 8, "data": Data(path), "device": "cpu", **fields}
    return replace(base, flow=Flow(VolumePreserving(4, 2), 3), **changes)


def rows(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Interrupting(QuietProgress):
    """Interrupts, as Ctrl-C does, when a step is reported."""

    def __init__(self, step: int) -> None:
        self.at = step

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        if completed == self.at:
            os.kill(os.getpid(), signal.SIGINT)


@by_preset
def test_a_course_writes_its_numbers_and_two_states(preset, path, tmp_path) -> None:
    settings = small(preset, path, space=YDbDr(), labels=30)
    before = torch.get_rng_state()
    outcome = learn(settings, tmp_path)
    assert outcome.finished and outcome.last is not None and outcome.best is not None
    assert torch.equal(torch.get_rng_state(), before), "the caller's random numbers go on"
    metrics = rows(tmp_path)
    assert [row["epoch"] for row in metrics] == [1, 2] and metrics[-1]["step"] == outcome.step
    assert metrics[0]["best"] is None and metrics[1]["best"] == metrics[1]["held_out.objective"]
    shared, labels = preset is not supervised, preset is not unsupervised
    assert ("i_nce" in metrics[0]) == ("bound" in metrics[0]) == ("held_out.i_nce" in metrics[0]) == shared
    assert ("accuracy_1" in metrics[0]) == ("held_out.cross_entropy_2" in metrics[0]) == labels
    assert all(math.isfinite(value) for row in metrics for value in row.values() if value is not None)
    assert not shared or metrics[0]["bound"] == math.log(12)
    assert read_learning(tmp_path) == settings
    images = torch.rand(4, 3, 5, 5)
    channels = outcome.last.convert(images)
    assert channels.shape == images.shape
    normalized_channels = YDbDr().statistics.normalize().apply(YDbDr().convert(images), torch.empty(4, 0))
    assert 0 < float((channels - normalized_channels).abs().max()) < 0.1, "two epochs move the flow a little"


class Listening(QuietProgress):
    """Keeps the lines that are reported."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


@pytest.mark.parametrize(("best_after", "words"), [(0.5, "the best from epoch 2 on"), (0.0, "the best so far")])
def test_a_state_is_called_the_best_of_the_epochs_that_count(best_after: float, words: str, path, tmp_path) -> None:
    """Of two epochs, the second may be the worse one, and yet be the one that is kept."""
    progress = Listening()
    learn(small(semi_supervised, path, best_after=best_after), tmp_path, progress)
    found = [re.search("; objective on held-out images [^,]+(, (.*))?", line) for line in progress.lines]
    praise = [match[2] for match in found if match]
    assert praise[-1 if best_after else 0] == words and (praise[0] is None or not best_after)


def test_an_interrupted_course_ends_as_if_it_had_not_been(path, tmp_path) -> None:
    """Stopped in the middle of an epoch: every parameter, number and file is the same, bit by bit."""
    settings = small(semi_supervised, path, scaling=ByStatistics())
    whole = learn(settings, tmp_path / "whole")
    first = learn(settings, tmp_path / "halves", Interrupting(5))
    assert not first.finished and first.step == 6 and first.step % 4
    halves = learn(settings, tmp_path / "halves")
    assert halves.finished and halves.last == whole.last and halves.best == whole.best
    for name in ("last.safetensors", "best.safetensors", "checkpoint/step-000000008/tensors.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "halves" / name).read_bytes()
    pair = zip(rows(tmp_path / "whole"), rows(tmp_path / "halves"), strict=True)
    assert all({**one, "seconds": 0} == {**other, "seconds": 0} for one, other in pair)
    again = learn(settings, tmp_path / "halves")
    assert again == halves, "nothing is left to do"


@pytest.mark.slow
def test_a_course_sees_the_same_images_whoever_decodes_them(path, tmp_path, monkeypatch) -> None:
    """The channels are measured between two epochs, on a part of the images that the same workers decode."""
    monkeypatch.setattr(LearningImages, "channels", partialmethod(LearningImages.channels, 24))
    learned = []
    for workers in (0, 1):
        data = Data(path, num_workers=workers, resident_bytes=0)
        settings = small(unsupervised, path, data=data, validation=0.2, epochs=3)
        learned.append(learn(settings, tmp_path / f"{workers}").last)
    assert learned[0] == learned[1]


def test_a_course_that_has_ended_does_not_need_its_checkpoints(path, tmp_path) -> None:
    """They take thousands of times the disk that the learned views take."""
    settings = small(unsupervised, path)
    ended = learn(settings, tmp_path)
    shutil.rmtree(tmp_path / "checkpoint")
    files = {file.name: file.read_bytes() for file in tmp_path.glob("*.safetensors")}
    again = learn(settings, tmp_path)
    assert again == ended and not (tmp_path / "checkpoint").exists(), "it does not start again at the first step"
    assert {file.name: file.read_bytes() for file in tmp_path.glob("*.safetensors")} == files
    assert [row["epoch"] for row in rows(tmp_path)] == [1, 2] and epochs_done(tmp_path) == (2, 2)


def test_other_settings_or_images_are_refused_on_the_same_folder(path, tmp_path) -> None:
    settings = small(unsupervised, path, epochs=1)
    learn(settings, tmp_path)
    with pytest.raises(UserError, match="epochs is 1 there, 3 was asked"):
        learn(replace(settings, epochs=3), tmp_path)
    for name in ("resident_side", "shuffle_window"):
        with pytest.raises(UserError, match=rf"data\.{name} is \d+ there, 4 was asked"):
            learn(replace(settings, data=replace(Data(path), **{name: 4})), tmp_path)
    with pytest.raises(UserError, match="began on 60 images"):
        learn(replace(settings, data=Data(path, max_images=30)), tmp_path)


@by_turns
def test_a_loss_that_is_not_finite_ends_the_course_at_the_last_finite_state(updates, path, tmp_path) -> None:
    settings = small(unsupervised, path, updates=updates, learning_rates=Rates(generator=1e4), epochs=20)
    with pytest.raises(UserError, match="stopped at step .* Lower the rates, or bound the flow"):
        learn(replace(settings, flow=Flow(RealNVP(4, 2), 6)), tmp_path)
    state = torch.cat([value.flatten() for value in _state(tmp_path / "last.safetensors").values()])
    assert torch.isfinite(state).all()


def _state(file: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    return load_file(file)


def test_labels_are_required_only_where_a_term_needs_them(path, tmp_path) -> None:
    without_labels = str(Path(path).with_name("unlabeled.npz"))
    for preset in (supervised, semi_supervised):
        with pytest.raises(UserError, match="none of the 60 images has one"):
            learn(small(preset, without_labels), tmp_path / "none")
    assert not (tmp_path / "none").exists(), "what is refused leaves nothing behind"
    assert isinstance(learn(small(unsupervised, without_labels, epochs=1), tmp_path / "some"), LearnedViews)


def test_too_few_images_of_a_kind_are_named(path, tmp_path) -> None:
    with pytest.raises(UserError, match="too few held-out images: a step takes 2, found 1 among 60 images: give more"):
        learn(small(unsupervised, path, validation=0.02), tmp_path)
    with pytest.raises(UserError, match="too few training images: a step takes 90, .* or set a smaller batch_size"):
        learn(small(unsupervised, path, batch_size=90), tmp_path)
    too_few = "too few labeled held-out images: a step takes 2, found 0 .* or set labels to a larger number"
    with pytest.raises(UserError, match=too_few):
        learn(small(supervised, path, labels=CLASSES), tmp_path)
    with pytest.raises(UserError, match="labels is 90, but only 60 of the 60 images have one: give at most that"):
        learn(small(supervised, path, labels=90), tmp_path)


def test_networks_that_do_not_fit_the_views_are_refused(path, tmp_path) -> None:
    settings = small(unsupervised, path, channels=((0, 1), (2,)))
    with pytest.raises(UserError, match="2 and 1 channels of 8 pixels"):
        learn(settings, tmp_path)
