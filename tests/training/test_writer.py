"""Who else writes: two processes with one folder, two with one cache, a clock that jumps, a disk that is full."""

import errno
import os
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from run_states import assert_equal, rows, state
from small_runs import lock_of_another, new_process, small_run, train_in_process, write_images

from vantage.composition.codec import allowing
from vantage.errors import UserError
from vantage.progress import QuietProgress
from vantage.storage.metrics import Metrics, read_metrics
from vantage.training.folder import settings, writer
from vantage.training.loop import resume, train
from vantage.training.session import Session


@pytest.fixture
def images_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Images, and a cache of the test's own."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    return write_images(tmp_path / "images.npz")


def test_a_folder_that_another_process_trains_in_is_refused_and_kept(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_PATIENCE", 0.2)
    run, folder = small_run("moco_v2", images_path, epochs=1), tmp_path / "run"
    with (
        lock_of_another(folder),
        pytest.raises(UserError, match="another process is training the run in .*: wait until it ends"),
    ):
        train(run, folder)
    assert list(folder.iterdir()) == []
    train(run, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with (
        allowing("tiny"),
        lock_of_another(folder),
        pytest.raises(UserError, match="another process is training the run in"),
    ):
        resume(folder)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_two_threads_do_not_train_at_once(images_path: str, tmp_path: Path) -> None:
    """Torch's random numbers are those of the process, so each run would get others than it gets alone."""
    run, refusals = small_run("moco_v2", images_path, epochs=1), list[str]()

    def train_others() -> None:
        for call in (lambda: train(run, tmp_path / "second"), lambda: resume(tmp_path / "first", run)):
            with pytest.raises(UserError, match="another thread of this process is training a run") as refusal:
                call()
            refusals.append(str(refusal.value))

    class FromAThread(QuietProgress):
        def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
            thread = threading.Thread(target=train_others)
            thread.start()
            thread.join()

    train(run, tmp_path / "first", FromAThread())
    assert len(refusals) >= 2 and not (tmp_path / "second").exists()
    assert train(run, tmp_path / "second").finished


def test_a_forked_process_may_train_while_a_thread_of_the_other_one_does() -> None:
    begun, done = threading.Event(), threading.Event()

    def train_meanwhile() -> None:
        with writer.only_training():
            begun.set()
            done.wait()

    thread = threading.Thread(target=train_meanwhile)
    thread.start()
    begun.wait()
    with pytest.raises(UserError, match="another thread"), writer.only_training():
        pass
    if not (child := os.fork()):
        try:
            with writer.only_training():
                os._exit(0)
        finally:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    done.set()
    thread.join()
    assert status == 0


def test_workers_that_outlive_a_failed_run_do_not_keep_its_folder(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback of an error, which notebooks keep, refers to them."""

    class Fails(QuietProgress):
        def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
            if completed == 7:
                raise ZeroDivisionError

    monkeypatch.setattr(writer, "_PATIENCE", 0.2)
    run, folder = small_run("moco_v2", images_path, epochs=2), tmp_path / "run"
    run = replace(run, data=replace(run.data, resident_bytes=0, num_workers=1))
    with pytest.raises(ZeroDivisionError) as failure:
        train(run, folder, Fails())
    with allowing("tiny"):
        assert resume(folder).finished
    assert failure.tb


@pytest.mark.slow
def test_one_of_two_that_begin_at_once_is_refused(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other has begun, and ended, between the first look and the lock."""
    run, folder = small_run("moco_v2", images_path, epochs=1), tmp_path / "run"
    prepare = Session.__init__

    def late(self: Session, *arguments: object) -> None:
        monkeypatch.setattr(Session, "__init__", prepare)
        train(run, folder)
        prepare(self, *arguments)  # pyright: ignore[reportArgumentType]

    monkeypatch.setattr(Session, "__init__", late)
    with pytest.raises(UserError, match="already holds a run"):
        train(run, folder)
    with allowing("tiny"):
        assert resume(folder).finished


@pytest.mark.slow
def test_of_two_processes_with_one_folder_one_trains_and_those_that_share_a_cache_agree(
    images_path: str, tmp_path: Path
) -> None:
    names = ("shared", "shared", "own")
    processes = [new_process(train_in_process, "moco_v2", images_path, tmp_path / name) for name in names]
    for process in processes:
        process.join()
    first, second, alone = (process.exitcode for process in processes)
    assert sorted((first == 0, second == 0)) == [False, True] and alone == 0
    assert_equal(state(tmp_path / "shared"), state(tmp_path / "own"))
    assert rows(tmp_path / "shared") == rows(tmp_path / "own")


DAY = 86_400.0
CLOCKS = {
    "set back": (-DAY, ("time",)),
    "set forward": (DAY, ("time",)),
    "asleep": (DAY, ("time", "monotonic")),  # of a machine that is suspended, some systems advance both clocks
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CLOCKS)
def test_a_clock_that_jumps_changes_nothing(
    case: str, images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_run("moco_v2", images_path, epochs=2)
    train(run, tmp_path / "whole")
    jump, clocks = CLOCKS[case]
    step_of, jumps = Session.step, [0]

    def fail_at_ninth_step(self: Session, batch: object, step: int) -> torch.Tensor:
        jumps[0] += 1
        if jumps[0] == 9:
            raise KeyboardInterrupt
        return step_of(self, batch, step)  # pyright: ignore[reportArgumentType]

    def later(now: Callable[[], float]) -> Callable[[], float]:
        return lambda: now() + jumps[0] * jump

    for clock in clocks:
        monkeypatch.setattr(time, clock, later(getattr(time, clock)))
    monkeypatch.setattr(Session, "step", fail_at_ninth_step)
    with pytest.raises(KeyboardInterrupt):
        train(run, tmp_path / "cut")
    with allowing("tiny"):
        assert resume(tmp_path / "cut").finished
    assert_equal(state(tmp_path / "whole"), state(tmp_path / "cut"))
    assert rows(tmp_path / "whole") == rows(tmp_path / "cut")
    seconds = [row["seconds"] for row in read_metrics(tmp_path / "cut")]
    assert 0 < seconds[0] <= seconds[1] < 600 + (12 * DAY if "monotonic" in clocks else 0)


def test_metrics_on_a_full_disk_are_reported_and_the_rows_before_stay(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path, 0)
    metrics.write({"step": 1, "loss": 1.0})
    backup = (tmp_path / "metrics.jsonl").rename(tmp_path / "kept")
    (tmp_path / "metrics.jsonl").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"metrics.jsonl .*: No space left on device. Free some space and start"):
        metrics.write({"step": 2, "loss": 0.5})
    (tmp_path / "metrics.jsonl").unlink()
    backup.rename(tmp_path / "metrics.jsonl")
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2, "lo')  # what of a line had room
    Metrics(tmp_path, 1)
    assert read_metrics(tmp_path) == [{"step": 1, "loss": 1.0}]


@pytest.mark.slow
def test_a_run_whose_metrics_find_no_room_goes_on_as_if_they_had(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = small_run("moco_v2", images_path, epochs=2)
    train(run, tmp_path / "whole")
    write = Metrics.write

    def full(self: Metrics, row: dict[str, object]) -> None:
        if row["epoch"] == 2:
            raise UserError("metrics.jsonl: No space left on device")
        write(self, row)

    monkeypatch.setattr(Metrics, "write", full)
    with pytest.raises(UserError, match="No space left"):
        train(run, tmp_path / "cut")
    monkeypatch.setattr(Metrics, "write", write)
    with allowing("tiny"):
        assert resume(tmp_path / "cut").finished
    assert_equal(state(tmp_path / "whole"), state(tmp_path / "cut"))
    assert rows(tmp_path / "whole") == rows(tmp_path / "cut")


def test_settings_on_a_full_disk_leave_nothing(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def full(handle: int) -> None:
        if settings.FILE in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=r"the settings could not be written to .*: No space left on device"):
        train(small_run("moco_v2", images_path, epochs=1), tmp_path / "run")
    assert not (tmp_path / "run").exists()
