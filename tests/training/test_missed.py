"""Images that disappear while a run trains: a few are replaced with a warning, more end the run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from small_runs import IMAGES, SIZE, small_run

from vantage.composition.codec import allowing
from vantage.errors import DataError
from vantage.progress import QuietProgress
from vantage.training.loop import resume, train
from vantage.training.run import Data, Run


class Remover(QuietProgress):
    """Removes the last images once the first epoch is reported."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder, self.count = folder, count
        self.warnings = list[str]()

    def line(self, text: str) -> None:
        """Look for the end of the first epoch."""
        for name in sorted(self.folder.iterdir())[-self.count :] if text.startswith("epoch 1:") else ():
            name.rename(self.folder.parent / name.name)

    def warn(self, text: str) -> None:
        """Keep it."""
        self.warnings.append(text)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Two epochs of files that are streamed."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "photos").mkdir()
    pixels = np.random.default_rng(0).integers(0, 256, (IMAGES, SIZE, SIZE, 3), dtype=np.uint8)
    for number, picture in enumerate(pixels):
        Image.fromarray(picture).save(tmp_path / "photos" / f"{number:02d}.png")
    data = Data(str(tmp_path / "photos"), resident_bytes=0, num_workers=0)
    return replace(small_run("moco_v2", "", epochs=2), data=data)


def test_a_few_that_disappear_are_reported(run: Run, tmp_path: Path) -> None:
    progress = Remover(tmp_path / "photos", 3)
    assert train(run, tmp_path / "run", progress).finished
    (warning,) = progress.warnings
    assert warning.startswith(f"3 of {IMAGES} images could no longer be read in this epoch (such as ")
    assert warning.endswith("No such file or directory): the images after them took their place")


def test_more_end_the_run_which_then_goes_on(run: Run, tmp_path: Path) -> None:
    folder, photos = tmp_path / "run", tmp_path / "photos"
    with pytest.raises(DataError, match=f"4 of {IMAGES} images could no longer be read .*: bring them back, and res"):
        train(run, folder, Remover(photos, 4))
    for path in tmp_path.glob("*.png"):
        path.rename(photos / path.name)
    with allowing("tiny"):
        assert resume(folder).finished
