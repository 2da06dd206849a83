"""Two processes with one folder: the second gets an error, and nothing of the first is touched."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from small_runs import lock_of_another, small_run
from tiny import TinyBackbone, images

from vantage.data import Arrays
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.studies.benefit import BenefitPlan, measure_benefit
from vantage.studies.moving_mnist import InfoMinTable4, reproduce
from vantage.studies.sweep import CropBound, Study, run_study
from vantage.studies.view_learning import learn, unsupervised
from vantage.training.folder import writer

SOURCE = images(24, 0)


def sweeping(folder: Path) -> object:
    run = small_run("moco_v2", "", epochs=1)
    return run_study(Study(CropBound((0.2, 0.6)), run, (0,)), SOURCE, images(12, 1), folder)


def comparing(folder: Path) -> object:
    return measure_benefit(folder / "run", SOURCE, None, folder, BenefitPlan(), work=Work("cpu"))


def learning(folder: Path) -> object:
    return learn(unsupervised(8, (TinyBackbone(), TinyBackbone())), folder)


def reproducing(folder: Path) -> object:
    def pixels(*shape: int) -> Arrays:
        return Arrays(np.zeros((20, *shape), np.uint8), np.arange(20) % 10, "zeros")

    sources = {"digits": pixels(28, 28), "test_digits": pixels(28, 28)}
    sources |= {"backgrounds": pixels(64, 64, 3), "test_backgrounds": pixels(64, 64, 3)}
    return reproduce(InfoMinTable4(), sources, folder)


@pytest.mark.parametrize("work", [sweeping, comparing, learning, reproducing])
def test_who_comes_second_gets_an_error(
    work: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PATIENCE", 0.1)
    folder = tmp_path / "out"
    message = f"another process is {work.__name__}.* in .*out: wait until it ends, or name another folder"
    with lock_of_another(folder), pytest.raises(UserError, match=message):
        work(folder)
    assert list(folder.iterdir()) == []
