"""The training loop, top to bottom.

No random state is saved: step s of a run draws the same views, orders and negatives whenever it is computed, so a
resumed run needs only its tensors and its step.
"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from vantage import draws, processes
from vantage.composition.field_types import expect
from vantage.data import Source
from vantage.machine.launchers import check_processes, describe_as_torchrun
from vantage.machine.load import using_threads
from vantage.machine.usual_torch import usual_torch
from vantage.processes.sharing import by_first, true_on_all
from vantage.progress import Progress, QuietProgress, counting, ending
from vantage.storage.files import remove_on_failure
from vantage.storage.metrics import Metrics
from vantage.storage.strangers import RUN_NAMES, check_run_folder
from vantage.training.computing.launch import launch
from vantage.training.ended import continues, last_step
from vantage.training.folder import checkpoint, settings
from vantage.training.folder.kept_epochs import keep_if_due, refuse_kept
from vantage.training.folder.same_run import check_same_everywhere, check_same_run
from vantage.training.folder.writer import must_stay, only_training, only_writer, refuse_a_run
from vantage.training.images import no_longer_seen, open_images
from vantage.training.run import Run
from vantage.training.session import Session, check_belongs
from vantage.training.signals import Signals, anywhere
from vantage.training.start.begin_folder import begin_folder
from vantage.training.start.doubts import doubts
from vantage.training.start.epochs import counted_at_start
from vantage.training.start.first_rows import begin
from vantage.training.start.try_parts import check_groups
from vantage.training.start.warm_parts import take
from vantage.training.start.warm_start import WarmStart, read_start, recorded_start
from vantage.training.watching.epoch_end import end_epoch
from vantage.training.watching.pace import Pace
from vantage.training.watching.probe import check_labels
from vantage.training.watching.stopwatch import Stopwatch
from vantage.training.watching.watch import Watch

__all__ = ["TrainingOutcome", "resume", "train"]

_READ_SECONDS = 2.0
"""If steps are slow, a run on one process reads loss and signals this often; several, which exchange them, do not."""


@dataclass(frozen=True)
class TrainingOutcome:
    """How a run ended."""

    folder: Path
    """The run's folder."""

    step: int
    """Optimizer steps taken."""

    finished: bool
    """Whether all epochs are done; if not, a signal stopped the run, and `resume` continues it."""


@usual_torch()
def train(
    run: Run,
    folder: Path | str,
    progress: Progress | None = None,
    *,
    source: Source | None = None,
    init: Path | str | WarmStart | None = None,
) -> TrainingOutcome:
    """Train a run from its start and keep everything in `folder`.

    The run is used as given; to adapt a recipe to a data set, call `run.fit(images)` first. Only schedules that still
    count ImageNet's epochs, as those put into a run after `fit` do, count the run's own. `source`, any object with
    the methods of `Source`, gives the images in place of `run.data.path`. Its fingerprint is recorded, so that `resume`
    can check that the images are the same. SIGINT and SIGTERM save a checkpoint and end the run early. Torch's default
    generators, gradient modes, autocast, default dtype and default device neither affect the run nor are changed by it.

    `progress` also gets a line for what is unlikely to be meant, such as views that no branch uses.

    `init` is a warm start: the folder of another run under any recipe, one of its checkpoints, a file of weights, or
    what `read_start` has read there. The networks start from it, and so do the optimizer and the memories as far as
    they fit (`vantage.training.start.warm_start`). The progress and `provenance.json` list what was taken. Steps count
    from 0, and the order of the images follows from this run's seed.

    Raises `UserError` if the folder already holds a run, if another thread of this process is training, if the images
    cannot be used or do not fit the networks, if the backbone in `init` does not match, or if the loss is no longer
    finite. A run that fails before its first checkpoint leaves nothing of its own in the folder, unless the disk was
    full: `resume` then starts it at its first step.
    """
    expect(run, Run, "the run", "a value, such as vantage.moco_v2().fit(images=10_000)")
    expect(folder, Path | str, "the folder", "a path, such as 'runs/first'")
    expect(progress, Progress | None, "the progress", "vantage.progress.progress_for()")
    folder = Path(folder)
    refuse_a_run(folder)
    check_groups(run)  # again in `Session`, but reading the images first may take hours
    progress = progress or QuietProgress()
    start = read_start(init) if isinstance(init, Path | str) else init
    for line in doubts(run):
        progress.line(line)
    with only_training(), using_threads(run.hardware.threads):
        return _train(run, folder, None, progress, source, start, resumed=False)


@usual_torch()
def resume(
    folder: Path | str, run: Run | None = None, progress: Progress | None = None, *, source: Source | None = None
) -> TrainingOutcome:
    """Continue a run from its newest checkpoint, or from the start if it has none yet.

    `run` may differ from the stored settings only in `hardware`, `monitoring` and `data` (but not in
    `data.shuffle_window`); any other difference raises `UserError`. A run that was trained on a `source` needs it
    again, unless all its steps are done: nothing is then left for which its images would be read.
    """
    expect(folder, Path | str, "the folder", "that of a run, such as 'runs/first'")
    expect(run, Run | None, "the run", "a value, such as vantage.moco_v2(), or none for the stored settings")
    expect(progress, Progress | None, "the progress", "vantage.progress.progress_for()")
    folder = Path(folder)
    refuse_kept(folder)
    check_run_folder(folder)
    newest = checkpoint.latest(folder)
    start = None if newest else recorded_start(folder)
    run, progress = run or settings.read(folder), progress or QuietProgress()
    check_groups(run)  # the number of processes may be another
    if newest and source is None and not run.data.path and (step := last_step(run, folder, newest)) is not None:
        with only_writer(folder):
            by_first(partial(keep_if_due, run, folder, run.epochs))  # a killed process may have left it undone
        progress.line(continues(step, step))
        return TrainingOutcome(folder, step, finished=True)
    with only_training(), using_threads(run.hardware.threads):
        return _train(run, folder, newest, progress, source, start, resumed=True)


def _train(
    run: Run,
    folder: Path,
    newest: Path | None,
    progress: Progress,
    source: Source | None,
    start: WarmStart | None,
    resumed: bool,
) -> TrainingOutcome:
    describe_as_torchrun()
    check_processes(run.hardware.devices, run.hardware.nodes)
    fabric, run = launch(run, progress)
    with draws.torch_seed(run.seed, fabric.device):  # afterwards, the caller's random numbers go on
        images, line = open_images(run.data, source=source, together=True)
        progress.line(line)
        run = counted_at_start(run, len(images), settings.read(folder) if resumed else None, progress)
        check_labels(run, images)  # now: failing at the first validation would lose the epoch before it
        data = _checked_images(run, folder, newest, images, resumed)
        with counting(progress, "decoding images") as report:
            session = Session(run, fabric, images, report)
        origin = start and take(start, session.learner, session.optimizer.optimizer, run, images, progress)
        tidy = remove_on_failure(folder, partial(must_stay, folder), RUN_NAMES)
        with ending(progress), only_writer(folder), tidy, session.writer:
            if not resumed:  # another process may have started meanwhile
                refuse_a_run(folder)
                true_on_all(True)  # a barrier: all have looked before one writes
            by_first(lambda: begin_folder(session, folder, data, resumed, origin, progress))
            step, clock = session.restore(newest) if newest else (0, 0.0)
            if not newest:
                begin(session.learner, run, images, progress)
            if start is not None:
                session.save(folder, step, clock)
            if resumed:
                progress.line(continues(step if newest else None, run.epochs * session.feed.steps))
            with Signals() as signals:
                step = _loop(session, folder, step, clock, progress, signals)
        return TrainingOutcome(folder, step, finished=step == run.epochs * session.feed.steps)


def _checked_images(run: Run, folder: Path, newest: Path | None, images: Source, resumed: bool) -> dict[str, Any]:
    """What identifies the images. Raises `UserError` if processes see different ones, or if they are not those that the
    run began on."""
    data = {"fingerprint": images.fingerprint(), "images": len(images)}
    check_same_everywhere(run, data)
    if resumed:
        check_same_run(run, folder, data, no_longer_seen(images))
    if newest:
        check_belongs(newest, run, data["images"])
    return data


def _loop(session: Session, folder: Path, step: int, clock: float, progress: Progress, signals: Signals) -> int:
    run, steps = session.run, session.feed.steps
    trained, unread = Stopwatch(clock), Stopwatch()
    metrics = by_first(lambda: Metrics(folder, step, f"`vantage resume {folder}`"))
    progress.start(run.recipe, run.epochs * steps, step)
    if step and step % steps == 0:
        by_first(partial(keep_if_due, run, folder, step // steps))  # a killed process may have left it undone
    watch, pace = Watch(session, folder), Pace(run.monitoring.minutes, session.work, step, clock)
    for epoch in range(step // steps, run.epochs):
        epoch_step, epoch_time = step, Stopwatch()
        for batch in session.feed.batches(epoch, step % steps):
            watch.add(step, session.step(batch.to(session.fabric.device), step))
            step += 1
            late = session.is_late
            soon = processes.count() == 1 and (signals.requested or late or unread.seconds > _READ_SECONDS)
            if step % run.monitoring.log_every and step % steps and not soon:
                continue
            loss = watch.check()
            unread.restart()
            speed = run.batch_size * (step - epoch_step) / epoch_time.seconds
            note = f"epoch {epoch + 1}/{run.epochs}  loss {loss:.4f}  {speed:,.{0 if speed >= 10 else 1}f} images/s"
            progress.advance(step, note, pace.seconds_left(step))
            if metrics is not None and (message := pace.late(step)):
                progress.warn(message)
            stop = anywhere(signals.requested or session.writer.failed())
            if step % steps and (stop or anywhere(late)):
                session.save(folder, step, trained.seconds)
                if stop:
                    session.writer.finish()
                    return step
        session.writer.finish()  # before the next row of metrics, which is not of an epoch that it keeps
        watch.check_weights(step)
        end_epoch(session, metrics, epoch, step, trained.seconds, progress)
        stop = signals.anywhere()
        if stop or session.must_save(epoch + 1):
            session.save(folder, step, trained.seconds, partial(keep_if_due, run, folder, epoch + 1))
        if stop:
            break
    session.writer.finish()
    return step
