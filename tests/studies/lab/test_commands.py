"""Pretraining at the papers' scale, tried: composed as the command line composes it for 1.28 million images, and taken
one step on a few images, with a sixteenth of the channels."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from vantage.cli import main, pretrain
from vantage.composition.fitting import everywhere
from vantage.data import Source, open_source
from vantage.encoders import ResNet
from vantage.progress import QuietProgress
from vantage.studies.lab import ENTRIES
from vantage.training import loop
from vantage.training.run import Data, Hardware, Run

LINES = dict.fromkeys(line for entry in ENTRIES for line in entry.commands if line.startswith("vantage pretrain "))
FEW, MANY = 16, 1_281_167


class Repeated:
    """A few images, over and over."""

    def __init__(self, few: Source) -> None:
        self.few, self.classes = few, few.classes

    def __len__(self) -> int:
        return MANY

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        return self.few.image(number % len(self.few))

    def label(self, number: int) -> int | None:
        return self.few.label(number % len(self.few))

    def name(self, number: int) -> str:
        return str(number)

    def fingerprint(self) -> str:
        return self.few.fingerprint()


def narrow(part: Any) -> Any:
    """An eighth as wide, with 8 channels: with fewer, oneDNN crashes on CPUs with AVX2 only (its issue 6035)."""
    return replace(part, width_multiplier=part.width_multiplier / 8) if isinstance(part, ResNet) else part


def one_step_training(few: Source) -> Callable[..., int]:
    """Stands in for training: networks at the paper's size without memory, and one step on a few images."""

    def train(run: Run, out: Path, init: object, console: object) -> int:
        with torch.device("meta"):
            run.encoders.build()
        small = run.fit(FEW, FEW).rescale(FEW, 1)
        small = replace(small, encoders=everywhere(small.encoders, narrow), data=Data(), hardware=Hardware("cpu"))
        assert loop.train(small, out, QuietProgress(), source=few).finished
        return 0

    return train


def images(folder: Path) -> None:
    chance = np.random.default_rng(0)
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        for number in range(FEW // 2):
            pixels = chance.integers(0, 255, (8, 8, 3), dtype=np.uint8)
            Image.fromarray(pixels).resize((256, 256)).save(folder / name / f"{number}.png")


def test_no_two_trainings_at_the_papers_scale_write_to_one_folder() -> None:
    folders = [line.split()[line.split().index("--out") + 1] for line in LINES]
    assert len(set(folders)) == len(folders), [one for one in folders if folders.count(one) > 1]


@pytest.mark.slow
def test_every_pretraining_at_the_papers_scale_takes_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for word in sorted({word for line in LINES for word in line.split() if "#" in word}):
        images(tmp_path / word.replace("#", "/"))
    few = open_source(tmp_path / "IMAGENET" / "train")
    monkeypatch.setattr(pretrain, "look_at", lambda *_, **__: (Repeated(few), ""))
    monkeypatch.setattr(pretrain, "show_expected_time", lambda *_: None)
    monkeypatch.setattr(pretrain, "_train", one_step_training(few))
    for line in LINES:
        assert main(line.split()[1:]) == 0, line
