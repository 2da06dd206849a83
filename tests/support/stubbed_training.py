"""A stub that stands in for training, and small images, for tests of `vantage pretrain` and `vantage resume`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from vantage import Run
from vantage.cli import main
from vantage.planning.speed import Speed
from vantage.training.folder import settings
from vantage.training.loop import TrainingOutcome


def make_images(folder: Path, side: int = 40, count: int = 20) -> Path:
    """Noise in two folders, `count` images each."""
    generator = np.random.default_rng(0)
    for name in "ab":
        (folder / name).mkdir(parents=True)
        for number in range(count):
            pixels = generator.integers(0, 255, (side + 4, side, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{number}.png")
    return folder


@dataclass
class TrainingStub:
    """Stands in for training, and keeps what it was called with."""

    run: Run | None = None
    folder: Path | None = None
    finished: bool = True
    init: Any = None
    speed: Speed = Speed(0.01)

    def train(self, run: Run, folder: Path, progress: Any = None, init: Any = None) -> TrainingOutcome:
        self.run, self.folder, self.init = run, folder, init
        settings.write(run, folder)
        return TrainingOutcome(folder, 5, self.finished)

    def resume(self, folder: Path, run: Run | None = None, progress: Any = None) -> TrainingOutcome:
        self.run, self.folder = run, folder
        return TrainingOutcome(folder, 5, self.finished)


def run_of(training: TrainingStub, *words: str | Path) -> Run:
    """The run that a command line describes."""
    assert main([str(word) for word in words]) == 0
    assert training.run is not None
    return training.run
