"""Measure how long a run takes on this machine, by real training steps on its images."""

import math
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch.nn.functional import normalize

from vantage.composition.fitting import change_all, parts_of
from vantage.data import Batch, Source
from vantage.data.order import steps_in
from vantage.encoders import SplitBatchNorm
from vantage.machine.devices import uses_cuda
from vantage.machine.load import using_threads
from vantage.memory import Store
from vantage.progress import QuietProgress
from vantage.records import Keys
from vantage.storage.files import temporary_folder
from vantage.training.computing.launch import launch
from vantage.training.run import Run
from vantage.training.session import Session

__all__ = ["SHORT_LOOK", "Speed", "fixed_share", "measure_speed"]

SHORT_LOOK = 2.0
"""Default number of seconds of training steps in a measurement."""

_WARMUP_STEPS = 0.25  # share of the seconds before timing starts: the first steps allocate memory and choose kernels
_SMALL = 32  # batch size of the first trial, since the network may be slow
_EXCHANGE_FACTOR = 1.1  # time of a step on several devices, relative to one device: they exchange gradients


@dataclass(frozen=True)
class Speed:
    """How long each part of a run takes, in seconds."""

    step: float
    """One optimizer step: images, views, networks, loss."""

    epoch: float = 0.0
    """Work at the end of each epoch: checkpoint, clusters, kNN accuracy during training."""

    start: float = 0.0
    """Work before the first step: decoding into memory, building networks, filling a bank."""

    fixed: float | None = None
    """Share of a step's time that does not depend on the views' side, if they grow (`ProgressiveResizing.fixed`)."""

    def seconds(self, run: Run, images: int) -> float:
        """Time of the whole run on `images` images."""
        return self.start + run.epochs * (steps_in(images, run.batch_size) * self.step + self.epoch)

    def images_per_second(self, run: Run) -> float:
        """Images per second in training; each image counts once, however many views it has."""
        return run.batch_size / self.step


def measure_speed(
    run: Run, source: Source, seconds: float = SHORT_LOOK, progress: Callable[[int, int], None] | None = None
) -> Speed:
    """The speed of a run on the images of `source`, from about `seconds` of training steps and a few more seconds for
    the work around them. `progress` gets (images done, images in all) while images are decoded into memory.

    The session is the one that training uses. Images decoded into memory stay in the cache, where training finds them.
    A network whose step takes longer than `seconds` is measured on a small batch, and the result is scaled up. A run on
    several devices is measured on one of them with its share of the batch and of the groups of BatchNorm, without
    compilation. Nothing is written to disk except a checkpoint in a temporary folder, and torch's default generator is
    left unchanged. Raises `UserError` for everything that training would refuse, and if the temporary folder has no
    room.
    """
    hardware = run.hardware
    shares = hardware.processes
    share = max(run.batch_size // shares, min(run.batch_size, 2 * run.accumulate))  # BatchNorm needs two images
    alone = replace(run, batch_size=share, hardware=replace(hardware, devices=1, nodes=1, compile=False))
    if shares > 1:
        alone = replace(alone, encoders=change_all(run.encoders, SplitBatchNorm, partial(_share, run)))
    with torch.random.fork_rng(devices=[]), using_threads(hardware.threads):
        few = replace(alone, batch_size=_few(alone))
        speed = _measure(few, source, min(seconds, SHORT_LOOK) / 4, progress)
        speed = replace(speed, step=speed.step * alone.batch_size / few.batch_size)
        if few != alone and speed.step <= seconds:
            speed = _measure(alone, source, seconds, progress)
    if shares > 1:
        slower = _EXCHANGE_FACTOR if uses_cuda(hardware.accelerator) else hardware.devices
        speed = replace(speed, step=speed.step * slower)
    return speed


def _share(run: Run, norm: SplitBatchNorm) -> SplitBatchNorm:
    """The groups of the joint batch that one process has; at least one in each accumulated part."""
    return SplitBatchNorm(max(run.accumulate, norm.groups // run.hardware.processes))


def _few(run: Run) -> int:
    """A small batch size that divides evenly into parts and BatchNorm groups; the full one if there is none."""
    groups = math.lcm(*(part.groups for part in parts_of(run.encoders) if isinstance(part, SplitBatchNorm)), 1)
    least = run.accumulate * (2 * groups if groups > 1 else 1)
    size = run.batch_size
    while size % 2 == 0 and size > _SMALL and (size // 2) % least == 0:
        size //= 2
    return size


def _measure(run: Run, source: Source, seconds: float, progress: Callable[[int, int], None] | None) -> Speed:
    launch_start = time.monotonic()
    fabric, run = launch(run, QuietProgress())
    session = Session(run, fabric, source, progress)
    start = time.monotonic() - launch_start
    waiting = _begin(session)
    batches = _endless(session)
    step, first, fixed = _steps(session, batches, seconds)
    batches.close()
    look = step * len(source) / run.batch_size / 3  # forward pass only: a third of forward and backward
    every = run.monitoring.knn_every
    epoch = _epoch(session) + (look / every if every else 0.0)
    return Speed(step, epoch, start + first + (waiting + look if waiting else 0.0), fixed)


def _begin(session: Session) -> float:
    """Seconds that the stores need to begin, if they wait for rows; random rows will do."""
    seconds = 0.0
    for number in range(len(session.run.branches)):
        store = session.learner.store(number)
        if store.waits:
            count, device = min(store.room, len(session.source)), session.fabric.device
            rows = normalize(torch.randn(count, session.learner.networks.width), dim=1).to(device)
            start = time.monotonic()
            store.begin(Keys(rows, torch.arange(count, device=device)).rows(store.share))
            seconds += time.monotonic() - start
    return seconds


def _endless(session: Session) -> Generator[Batch, None, None]:
    epoch = 0
    while True:
        yield from session.feed.batches(epoch, 0)
        epoch += 1


def fixed_share(small: float, full: float, area: float) -> float:
    """The share of a step's time that does not depend on the views' side, from the seconds of a step before views
    have grown (whose area is `area` of a full view) and of one with full views."""
    return min(1.0, max(0.0, (small / full - area) / (1 - area)))


def _steps(session: Session, batches: Iterator[Batch], seconds: float) -> tuple[float, float, float | None]:
    """Seconds per step, averaged over the sizes of growing views; the extra seconds of the first steps; and the fixed
    share of a step, if views grow to their full size."""
    run, steps = session.run, session.run.epochs * session.feed.steps
    stages = run.resizing.stages() if run.resizing else ((0.0, 1.0),)
    times = [_step(session, batches, seconds, share, math.ceil(begin * steps)) for begin, share in stages]
    mean_step = sum(share * step for (_, share), (step, _) in zip(stages, times, strict=True))
    fixed = None
    if run.resizing and run.resizing.until[-1] < 1 and run.resizing.sides[0] < session.side:
        fixed = fixed_share(times[0][0], times[-1][0], (run.resizing.sides[0] / session.side) ** 2)
    return mean_step, sum(first for _, first in times), fixed


def _step(session: Session, batches: Iterator[Batch], seconds: float, share: float, step: int) -> tuple[float, float]:
    """Seconds per step from `step` on, measured for `share` of `seconds`, and the extra seconds of the first step."""
    device = session.fabric.device

    def take(steps: int, window: float = 0.0) -> float:
        nonlocal step
        start, loss = time.monotonic(), torch.zeros(())
        count = 0
        while count < steps or time.monotonic() - start < window:
            loss = session.step(next(batches).to(device), step)
            step, count = step + 1, count + 1
        float(loss)  # synchronizes with the device
        return (time.monotonic() - start) / count

    first = slow = take(1)
    if first > seconds and device.type != "cpu":
        slow = take(1)  # on a GPU the first step also chooses kernels and records them
    if slow > seconds:
        return slow, first - slow
    window = share * seconds
    if slow < _WARMUP_STEPS * window:
        take(1, _WARMUP_STEPS * window)
    usual = take(2 if slow < window else 1, window)
    return usual, max(0.0, first - usual)


def _epoch(session: Session) -> float:
    """Seconds of the work at the end of an epoch."""
    start = time.monotonic()
    session.monitor.read()
    with temporary_folder() as folder:
        session.save(folder, 1, 0.0)
        session.writer.finish()
    seconds = time.monotonic() - start
    for store in session.learner.stores.values():
        assert isinstance(store, Store)
        start = time.monotonic()
        times = store.rehearse()
        seconds += times * (time.monotonic() - start)
    return seconds
