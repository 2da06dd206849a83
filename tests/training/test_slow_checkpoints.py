"""Where a checkpoint takes long to write, not every epoch ends with one, so that a slow disk does not slow a run."""

from dataclasses import replace
from pathlib import Path

import pytest
from run_states import assert_equal, rows, state
from small_runs import small_run, write_images

from vantage.training.folder import checkpoint
from vantage.training.folder.background import BackgroundWriter
from vantage.training.loop import resume, train
from vantage.training.run import Monitoring, Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Five epochs of six steps, of which every second is kept."""
    run = small_run("moco_v2", write_images(tmp_path / "images.npz"), epochs=5)
    return replace(run, monitoring=Monitoring(keep_every=2))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of the checkpoints that are written."""
    steps: list[int] = []
    save = checkpoint.save

    def saving(folder: Path, step: int, *others: object) -> Path:
        steps.append(step)
        return save(folder, step, *others)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(checkpoint, "save", saving)
    return steps


def seem_slow(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let every write seem to take this long."""
    timed = BackgroundWriter._timed

    def slow(self: BackgroundWriter, write: object) -> None:
        timed(self, write)  # pyright: ignore[reportArgumentType]
        self.seconds = seconds

    monkeypatch.setattr(BackgroundWriter, "_timed", slow)


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "expected"), [(4.9, [6, 12, 18, 24, 30]), (1000.0, [6, 12, 24, 30])])
def test_slow_ones_are_written_after_the_first_the_last_and_kept_epochs(
    seconds: float, expected: list[int], run: Run, steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seem_slow(monkeypatch, seconds)
    assert train(run, tmp_path / "run").finished
    assert steps == expected


def test_slow_ones_are_written_once_they_are_late_also_if_an_epoch_is_one_step(
    run: Run, steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seem_slow(monkeypatch, 1000.0)
    train(replace(run.rescale(48, 4), monitoring=Monitoring(checkpoint_minutes=0.0)), tmp_path / "run")
    assert steps == [1, 2, 3, 4]


@pytest.mark.slow
def test_a_run_that_was_cut_off_after_an_epoch_without_one_goes_on(
    run: Run, steps: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = replace(run, monitoring=Monitoring())
    train(run, tmp_path / "whole")
    with monkeypatch.context() as patch:
        seem_slow(patch, 1000.0)
        steps.clear()
        train_until_epoch(4, run, tmp_path / "cut", patch)
    assert steps == [6] and len(rows(tmp_path / "cut")) == 4
    assert resume(tmp_path / "cut").finished
    assert_equal(state(tmp_path / "cut"), state(tmp_path / "whole"))
    assert [row["step"] for row in rows(tmp_path / "cut")] == [6, 12, 18, 24, 30]


def train_until_epoch(epoch: int, run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train, and fail in the step after an epoch."""
    from vantage.training.session import Session

    step_of = Session.step

    def fail(self: Session, batch, step: int):
        if step == epoch * 6:
            raise ZeroDivisionError
        return step_of(self, batch, step)

    monkeypatch.setattr(Session, "step", fail)
    with pytest.raises(ZeroDivisionError):
        train(run, folder)
