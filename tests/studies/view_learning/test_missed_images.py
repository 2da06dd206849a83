"""Images that disappear while views are learned: a few are replaced with a warning, more end the learning."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from vantage.data.splits import hold_out_mask
from vantage.encoders import Convolutions
from vantage.errors import DataError
from vantage.progress import QuietProgress
from vantage.studies.view_learning import ViewLearning, learn, supervised, unsupervised
from vantage.training.run import Data
from vantage.views import Flow, VolumePreserving

IMAGES, SIZE, CLASSES = 60, 8, 3


class Remover(QuietProgress):
    """Removes some images once the first epoch is reported."""

    def __init__(self, images: list[Path]) -> None:
        self.images = images
        self.warnings = list[str]()

    def line(self, text: str) -> None:
        """Look for the end of the first epoch."""
        for path in self.images if text.startswith("epoch 1:") else ():
            path.rename(path.with_suffix(".away"))

    def warn(self, text: str) -> None:
        """Keep it."""
        self.warnings.append(text)


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    pixels = np.random.default_rng(0).integers(0, 256, (IMAGES, SIZE, SIZE, 3), dtype=np.uint8)
    for number, picture in enumerate(pixels):
        folder = tmp_path / "photos" / str(number * CLASSES // IMAGES)
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(folder / f"{number:02d}.png")
    return tmp_path / "photos"


def _learning(preset, photos: Path) -> ViewLearning:
    base = preset(SIZE, (Convolutions((4, 8), 1), Convolutions((4, 8), 2)))
    data = Data(str(photos), resident_bytes=0, num_workers=0)
    small = replace(base, flow=Flow(VolumePreserving(4, 2), 3), epochs=2, batch_size=9, labeled_batch_size=9)
    return replace(small, data=data, device="cpu")


def _some(learning: ViewLearning, photos: Path, held_out: bool, count: int) -> list[Path]:
    """Some of the images that are trained on, or of those that are held out."""
    labels = torch.arange(IMAGES) * CLASSES // IMAGES
    if not any(term.labeled for term in learning.terms):
        labels = torch.full((IMAGES,), -1)
    mask = hold_out_mask(labels, learning.validation, learning.seed)
    return [path for path, out in zip(sorted(photos.glob("*/*.png")), mask, strict=True) if bool(out) == held_out][
        :count
    ]


@pytest.mark.parametrize("preset", [unsupervised, supervised])
@pytest.mark.parametrize(("held_out", "images"), [(False, 54), (True, 6)])
def test_a_few_that_disappear_are_reported(preset, held_out: bool, images: int, photos: Path, tmp_path: Path) -> None:
    learning = _learning(preset, photos)
    progress = Remover(_some(learning, photos, held_out, 3))
    assert learn(learning, tmp_path / "views", progress).finished
    (warning,) = set(progress.warnings)
    assert warning.startswith(f"3 of {images} images could no longer be read in this epoch (such as ")


@pytest.mark.slow
@pytest.mark.parametrize("held_out", [False, True])
def test_more_end_the_learning_which_then_goes_on(held_out: bool, photos: Path, tmp_path: Path) -> None:
    learning = _learning(unsupervised, photos)
    whole = learn(learning, tmp_path / "whole")
    with pytest.raises(
        DataError, match=r"4 of \d+ images could no longer be read .*: bring them back, and give the sa"
    ):
        learn(learning, tmp_path / "views", Remover(_some(learning, photos, held_out, 4)))
    for path in photos.glob("*/*.away"):
        path.rename(path.with_suffix(".png"))
    resumed = learn(learning, tmp_path / "views")
    assert resumed.finished and resumed.last == whole.last
