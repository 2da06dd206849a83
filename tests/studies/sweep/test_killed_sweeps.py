"""A sweep that discards its runs, killed while it does, ends like one that was never killed."""

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from killed_sweeps import MOMENTS, sweep_until_killed
from small_runs import new_process, write_images
from small_studies import result_of, study_of

from vantage.studies.sweep import CropBound, Study, SweepResult
from vantage.training import loop


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """One run."""
    images = write_images(tmp_path_factory.mktemp("images") / "images.npz")
    small = study_of(images, CropBound((0.2,)))
    return replace(small, seeds=(0,), information=None, baselines=False, discard=True)


@pytest.fixture(scope="module")
def whole(study: Study, tmp_path_factory: pytest.TempPathFactory) -> SweepResult:
    """The result without a kill, trained by a process of the same kind: another number of threads sums otherwise."""
    folder = tmp_path_factory.mktemp("whole") / "sweep"
    process = new_process(sweep_until_killed, study, folder, "")
    process.join()
    assert process.exitcode == 0
    result = result_of(study, folder)
    assert list((folder / "runs").iterdir()) == []
    return result


@pytest.mark.parametrize("moment", MOMENTS)
def test_no_run_is_left_and_none_is_trained_twice(
    moment: str, study: Study, whole: SweepResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = new_process(sweep_until_killed, study, tmp_path / "sweep", moment)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    monkeypatch.setattr(loop, "train", lambda *_, **__: pytest.fail("it was trained again"))
    (row,), (expected,) = result_of(study, tmp_path / "sweep").rows, whole.rows
    assert replace(row, seconds=expected.seconds) == expected
    assert list((tmp_path / "sweep" / "runs").iterdir()) == []
