"""Segmentation: the measures against a loop, training, an unchanged backbone, and decoders that resume."""

import copy
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from references import segmentation as reference
from scenes import QUICK, RUN, SMALL, write_scenes
from tiny import cpu_work, saved_run

from vantage.cli import main
from vantage.data.sources.masked import open_masked, split_masked
from vantage.evaluate.protocols.segmentation import segmentation as module
from vantage.evaluate.protocols.segmentation.decoder import Decoder, MapAt, pixel_loss
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation
from vantage.frozen.encoder import random_encoder, raw_pixels
from vantage.measures.confusion import Confusion
from vantage.storage import state as kept_state
from vantage.views.colors.statistics import Statistics

PLAIN = Statistics((0.5, 0.5, 0.5), (0.2, 0.2, 0.2))


def test_measures_are_those_of_a_loop() -> None:
    chance = np.random.default_rng(0)
    truths = chance.choice([0, 1, 2, 4, 255], (3, 7, 5))
    guesses = np.where(
        chance.random((3, 7, 5)) < 0.5, np.where(truths == 255, 0, truths), chance.integers(0, 5, (3, 7, 5))
    )
    guesses[guesses == 3] = 0  # class 3 is nowhere
    confusion = Confusion.empty(5)
    for truth, guess in zip(truths, guesses, strict=True):
        confusion = confusion.plus(torch.from_numpy(truth).flatten(), torch.from_numpy(guess).flatten())
    by_loop = reference.measures(truths.tolist(), guesses.tolist(), 5)
    assert confusion.measures() == pytest.approx({name: by_loop[name] for name in confusion.measures()})
    actual = confusion.intersection_over_union()
    assert actual.tolist() == pytest.approx(by_loop["IoU"], nan_ok=True) and math.isnan(actual[3])
    assert int(confusion.count.sum()) == int((truths != 255).sum())
    assert confusion.present().tolist() == [True, True, True, False, True]


def test_a_class_that_is_only_predicted_counts_as_missed() -> None:
    confusion = Confusion.empty(3).plus(torch.tensor([0, 0, 1, 1]), torch.tensor([0, 2, 1, 1]))
    assert confusion.measures() == pytest.approx({"mIoU": 50.0, "pixel accuracy": 75.0, "mean accuracy": 75.0})


def test_the_loss_is_the_mean_over_pixels_with_a_class() -> None:
    score, mask = torch.randn(2, 3, 4, 5, dtype=torch.float64), torch.randint(0, 3, (2, 4, 5))
    mask[0, :2] = 255
    chance = score.log_softmax(1)
    losses = [
        -chance[b, mask[b, y, x], y, x] for b in range(2) for y in range(4) for x in range(5) if mask[b, y, x] < 3
    ]
    torch.testing.assert_close(pixel_loss(score, mask, 255), torch.stack(losses).mean())
    assert float(pixel_loss(score, torch.full_like(mask, 255), 255)) == 0.0


def test_the_decoder_has_four_convolutions() -> None:
    decoder = Decoder(6, 8, 3, 16)
    convolutions = [module for module in decoder.modules() if isinstance(module, torch.nn.Conv2d)]
    assert [(layer.in_channels, layer.out_channels) for layer in convolutions] == [(6, 8), (8, 8), (8, 8), (8, 3)]
    assert decoder(torch.randn(2, 6, 2, 3)).shape == (2, 3, 16, 16)
    assert decoder(torch.randn(2, 6, 1, 1)).shape == (2, 3, 8, 8)
    assert decoder(torch.randn(2, 6, 20, 20)).shape == (2, 3, 20, 20)


def test_colors_are_distinguished_and_the_backbone_stays(tmp_path: Path) -> None:
    path = write_scenes(tmp_path, 24)
    train, test = split_masked(open_masked(path))
    assert (len(train), len(test), train.classes) == (19, 5, ("0", "1", "2"))
    assert [test.name(number) for number in range(5)] == [f"a/{number}.jpg" for number in (10, 12, 18, 23, 8)]
    encoder = random_encoder(RUN)
    before = encoder.digest()
    outcome = Segmentation(size=16, depth=1, width=16, epochs=15, batch_size=8)(
        encoder, train, test, cpu_work(tmp_path)
    )
    assert encoder.digest() == before and not encoder.backbone.training
    assert outcome.measures["mIoU"] > 60 and list(outcome.measures)[0] == "mIoU"
    assert set(outcome.details["IoU"]) == {"0", "1", "2"} and (outcome.train_images, outcome.test_images) == (19, 5)
    assert QUICK(raw_pixels(RUN), train, test, cpu_work(tmp_path)).measures["pixel accuracy"] > 0


def test_maps_in_memory_cached_or_recomputed_train_the_same_decoder(tmp_path: Path) -> None:
    train, test = split_masked(open_masked(write_scenes(tmp_path, 10)))
    encoder, work = random_encoder(SMALL), cpu_work(tmp_path)
    (tmp_path / "file").write_text("")
    expected = QUICK(encoder, train, test, work)
    nowhere = replace(work, cache=tmp_path / "file")
    for other in (replace(work, resident_bytes=0), nowhere, replace(nowhere, resident_bytes=0)):
        assert QUICK(encoder, train, test, other) == expected


@pytest.mark.slow
def test_a_backbone_sees_images_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = split_masked(open_masked(write_scenes(tmp_path, 10)))
    subject, work, counts = random_encoder(SMALL), cpu_work(tmp_path), list[int]()
    honest = MapAt.forward

    def count_images(self: MapAt, images: torch.Tensor) -> torch.Tensor:
        counts.append(len(images))
        return honest(self, images)

    monkeypatch.setattr(MapAt, "forward", count_images)
    QUICK(subject, train, test, work)
    assert sum(counts) == 2 * 8 + 2 + 2  # both ways, the test images one way, and one of each for the shape
    for other in (replace(QUICK, seed=1), replace(QUICK, width=4, learning_rate=0.01), replace(QUICK, flip=0.2)):
        counts.clear()
        outcome = other(subject, train, test, work)
        assert not counts
        assert outcome == other(subject, train, test, cpu_work(tmp_path / f"{other}")) and counts
    changed_encoder = replace(subject, backbone=copy.deepcopy(subject.backbone))
    with torch.no_grad():
        next(changed_encoder.backbone.parameters()).add_(0.1)
    different = (
        (changed_encoder, QUICK), (random_encoder(SMALL, 5), QUICK), (subject, replace(QUICK, depth=1)),
        (subject, replace(QUICK, size=20)), (replace(subject, view=replace(subject.view, statistics=PLAIN)), QUICK),
    )  # fmt: skip
    for number, (encoder, other) in enumerate(different):
        counts.clear()
        assert other(encoder, train, test, work) == other(encoder, train, test, cpu_work(tmp_path / f"{number}"))
        assert sum(counts) == 2 * (2 * 8 + 2 + 2)


def test_changed_images_and_masks_are_read_again(tmp_path: Path) -> None:
    path = write_scenes(tmp_path, 10)
    encoder, work = random_encoder(SMALL), cpu_work(tmp_path)
    first = QUICK(encoder, *split_masked(open_masked(path)), work)
    for file in (tmp_path / "masks" / "a").iterdir():
        mask = np.array(Image.open(file))
        Image.fromarray(np.where(mask == 255, 255, (mask + 1) % 3).astype(np.uint8)).save(file)
    second = QUICK(encoder, *split_masked(open_masked(path)), work)
    assert second != first and second == QUICK(encoder, *split_masked(open_masked(path)), cpu_work(tmp_path / "fresh"))


def test_incomplete_maps_are_not_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = split_masked(open_masked(write_scenes(tmp_path, 10)))
    encoder, work = random_encoder(SMALL), cpu_work(tmp_path)
    honest, calls = MapAt.forward, list[int]()

    def fail(self: MapAt, images: torch.Tensor) -> torch.Tensor:
        calls.append(len(images))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return honest(self, images)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(MapAt, "forward", fail)
        QUICK(encoder, train, test, work)
    assert list((work.cache / "maps").iterdir()) == []
    assert QUICK(encoder, train, test, work) == QUICK(encoder, train, test, cpu_work(tmp_path / "fresh"))


@pytest.mark.slow
def test_the_command_line_evaluates_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved_run(tmp_path / "run", RUN)
    path, test = write_scenes(tmp_path / "one", 8), write_scenes(tmp_path / "two", 4, seed=1)
    (tmp_path / "names.txt").write_text("ground\nred\ngreen\n")
    quick_options = [
        "--size",
        "16",
        "--width",
        "8",
        "--epochs",
        "2",
        "--batch-size",
        "4",
        "--classes",
        str(tmp_path / "names.txt"),
    ]
    words = [
        "evaluate",
        "segmentation",
        str(tmp_path / "run"),
        "--data",
        path,
        "--test",
        test,
        *quick_options,
        "--baselines",
    ]
    assert main(words) == 0, capsys.readouterr().err
    output = capsys.readouterr()
    assert output.out.count("mIoU ") == 3 and "red: " in output.err
    (file,) = (tmp_path / "run" / "evaluations").iterdir()
    record = json.loads(file.read_text())
    assert record["settings"] == {
        "size": 16, "depth": -1, "width": 8, "epochs": 2, "batch_size": 4,
        "learning_rate": 0.001, "weight_decay": 0.0001, "flip": 0.5, "seed": 0,
    }  # fmt: skip
    assert set(record["outcomes"]["moco_v2"]["details"]["IoU"]) == {"ground", "red", "green"}
    assert main([*words, "--depth", "9"]) == 2 and "depth is 9" in capsys.readouterr().err
    assert main([*words[:4], str(tmp_path), *words[5:]]) == 2 and "two folders with #" in capsys.readouterr().err


def test_a_resumed_decoder_equals_an_uninterrupted_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenes = open_masked(write_scenes(tmp_path / "scenes", 12))
    encoder, protocol = random_encoder(SMALL), replace(QUICK, epochs=4)
    expected = protocol(encoder, scenes, scenes, cpu_work(tmp_path / "whole"))
    monkeypatch.setattr(kept_state, "MINUTES", -1.0)
    plain, calls = module.pixel_loss, list[int]()

    def stopping(*arguments):
        calls.append(0)
        if len(calls) == 8:  # in the third epoch of three steps
            raise KeyboardInterrupt
        return plain(*arguments)

    monkeypatch.setattr(module, "pixel_loss", stopping)
    with pytest.raises(KeyboardInterrupt):
        protocol(encoder, scenes, scenes, cpu_work(tmp_path / "cut"))
    (state,) = (tmp_path / "cut" / "cache" / "decoders").iterdir()
    assert protocol(encoder, scenes, scenes, cpu_work(tmp_path / "cut")) == expected
    assert len(calls) == 8 + 6 and not state.exists()
