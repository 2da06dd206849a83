"""What every evaluation of a sweep would warn about is said once, before the first training."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_runs import SIZE
from small_studies import study_of

from vantage.data import open_source
from vantage.encoding import Work
from vantage.progress import QuietProgress
from vantage.studies.sweep import CropBound, run_study
from vantage.studies.sweep.nested_progress import WarnsOnce

pytestmark = pytest.mark.usefixtures("allow_tiny")


class _Listening(QuietProgress):
    """Keeps lines and warnings, in their order."""

    def __init__(self) -> None:
        self.said = list[str]()

    def line(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.said.append(f"warning: {text}")


def test_a_class_that_is_absent_is_said_once(images_path: str, tmp_path: Path, capsys) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (24, SIZE, SIZE, 3), dtype=np.uint8)
    np.savez(tmp_path / "test.npz", images=pixels, labels=np.arange(24) % 12)
    study = replace(study_of(images_path, CropBound((0.2,))), seeds=(0,), information=None)
    train, test = open_source(images_path), open_source(tmp_path / "test.npz")
    progress = _Listening()
    work = Work("cpu", num_workers=1, cache=tmp_path / "cache")
    assert run_study(study, train, test, tmp_path / "sweep", work, progress).finished
    (place,) = (number for number, text in enumerate(progress.said) if text.startswith("warning: no training image is"))
    assert place == 0 < len(progress.said) - 1 and "no training image" not in capsys.readouterr().err


def test_other_warnings_are_shown_too() -> None:
    whole = _Listening()
    once = WarnsOnce(whole)
    for text in ("a", "b", "a"):
        once.warn(text)
    assert whole.said == ["warning: a", "warning: b"]
