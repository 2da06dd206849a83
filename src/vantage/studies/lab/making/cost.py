"""What entries cost: the images that their runs see, and the time that this machine needs for them."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from vantage.composition.fitting import parts_of
from vantage.durations import duration
from vantage.encoders import Backbone, Convolutions, Momentum, PerView
from vantage.machine.devices import has_bf16
from vantage.planning.speed import measure_speed
from vantage.studies.lab.contracts import HasCost
from vantage.studies.lab.entry import Arm, Entry
from vantage.studies.lab.making.compositions import arm_chain
from vantage.studies.lab.making.maker import Maker, Piece
from vantage.studies.lab.making.repeating import images_seen
from vantage.training.run import Run

__all__ = [
    "Remaining",
    "TrainingSpeeds",
    "Workload",
    "estimate_workload",
    "forward_passes",
    "passes_per_second",
    "time_per_seed",
]

_QUIET_SPEED = 2_500.0
"""Forward passes per second, including views, on one otherwise idle core at 2.5 GHz."""
_JUDGING_PASSES = 20_000.0
"""Approximate cost of measuring a cell, in forward passes: features of a small set and a classifier."""
_SMOKE_RUN, _SMOKE_JUDGING, _SMOKE_OWN = 2_500.0, 1_500.0, 5_000.0
"""Approximate cost at the smoke level, in forward passes: of starting a training run; of measuring a cell; and of a
measure that says its cost, besides that cost. Images are so few that they cost less than opening files."""
_ENOUGH = 0.02
"""Share of the work that must be done before the time left is told; opening the images is no measure of it."""
_ON_A_GPU = 3
"""How many times as fast several processes are as one if they share a GPU, at most: 14 were 3.3 times as fast on an
H100, with a ResNet-9 of width 32 and 256 images of 32 pixels per step."""
_LOOK = 1.0
"""Seconds of training steps from which the speed of a network is measured."""


@dataclass(frozen=True)
class Workload:
    """The work that remains."""

    pieces: int
    """Measurements of cells."""

    runs: int
    """Training runs."""

    views: int
    """Training images over all steps, each counted once per step, however many views are made of it."""

    seconds: float
    """Approximate time on one core."""

    def words(self, jobs: int = 1, gpu: bool = False) -> str:
        """The work in one line, for this many processes; with `gpu`, they share one."""
        speedup = min(jobs, _ON_A_GPU) if gpu else jobs
        return (
            f"{self.runs} training run{'s' * (self.runs != 1)} of {self.views:,} images in all and {self.pieces}"
            f" measurement{'s' * (self.pieces != 1)}: about"
            f" {duration(self.seconds / speedup)} with {jobs} process{'es' * (jobs > 1)}{' on one GPU' * gpu}"
        )


def forward_passes(run: Run) -> float:
    """Cost of a training image in forward passes; a backward pass counts as two. IR 3, MoCo 4, JCL 3 + M′."""
    queries = {branch.query for branch in run.branches}
    views = queries | {view for branch in run.branches for view in (*branch.keys, *branch.pool_views)}
    slow = len(views - queries) if isinstance(run.encoders, Momentum) else 0
    return 3.0 * (len(views) - slow) * (len(views) if isinstance(run.encoders, PerView) else 1) + slow


class TrainingSpeeds:
    """Forward passes per second in training, with views, losses and memories: measured by real steps, once for each
    backbone, batch size and image set. At the smoke level, where starting a run costs more than its steps, the speed of
    four convolutions alone is used for all."""

    def __init__(self, maker: Maker) -> None:
        self._maker = maker
        self._speeds: dict[tuple[Any, ...], float] = {}

    def __call__(self, arm: Arm | None) -> float:
        """The speed for an arm; None: of measurements."""
        if arm is None or self._maker.sets.smoke:
            return self._measured((), passes_per_second)
        run = arm.run
        backbones = (part for part in parts_of(run.encoders) if isinstance(part, Backbone))
        key = (arm.images, run.batch_size, *dict.fromkeys(map(repr, backbones)))
        return self._measured(key, lambda: self._in_training(arm))

    def _measured(self, key: tuple[Any, ...], measure: Callable[[], float]) -> float:
        if key not in self._speeds:
            self._speeds[key] = measure()
        return self._speeds[key]

    def _in_training(self, arm: Arm) -> float:
        step = measure_speed(arm.run, self._maker.split(arm).whole, _LOOK).step
        return arm.run.batch_size * forward_passes(arm.run) / step


def estimate_workload(
    maker: Maker, pieces: Sequence[Piece], speeds: Callable[[Arm | None], float] | None = None
) -> Workload:
    """The cost of some pieces: the forward passes of unfinished training runs, and those of every measurement, which it
    says itself or which are a fixed number, at `speeds` per second (if omitted, they are measured now, in a few seconds
    for each network). At the smoke level, each run and measurement has a cost of its own besides."""
    speeds = speeds or TrainingSpeeds(maker)
    runs = {key: arm for piece in pieces for key, arm in _missing_runs(maker, piece).items()}
    seconds = sum((_training_passes(maker, arm) / speeds(arm) for arm in runs.values()), 0.0)
    seconds += sum(_judging_passes(maker, piece) / speeds(None) for piece in pieces)
    return Workload(len(pieces), len(runs), sum(_views(maker, arm) for arm in runs.values()), seconds)


class Remaining:
    """The time that pieces still need, from the pace so far. Of `jobs` processes, each is taken to be as fast as this
    one. What others finish is part of the pace when this one comes to it."""

    def __init__(self, maker: Maker, pieces: Sequence[Piece], jobs: int = 1) -> None:
        self.costs, seen = list[float](), set[str]()
        for piece in pieces:
            runs = _missing_runs(maker, piece)
            training = sum(_training_passes(maker, arm) for key, arm in runs.items() if key not in seen)
            seen.update(runs)  # pieces share runs, which the first of them trains
            self.costs.append(_judging_passes(maker, piece) + training)
        self._start, self._all, self._jobs = time.monotonic(), sum(self.costs), jobs
        self._mine, self._others = 0.0, 0.0

    def end(self, cost: float, mine: bool = True) -> None:
        """A piece with this cost, one of `costs`, is done, by this process or by another."""
        if mine:
            self._mine += cost
        else:
            self._others += cost

    def seconds(self) -> float | None:
        """About how long; None while too little is finished."""
        done = max(self._jobs * self._mine, self._mine + self._others)
        if done < _ENOUGH * self._all or not done:
            return None
        return (time.monotonic() - self._start) * max(0.0, self._all - done) / done


def _missing_runs(maker: Maker, piece: Piece) -> dict[str, Arm]:
    """The unfinished training runs that a piece needs, by key."""
    keys = {maker.run_key(arm, piece.seed): arm for arm in arm_chain(piece.cell.experiment)}
    return {key: arm for key, arm in keys.items() if not maker.lab.is_trained(key)}


def _views(maker: Maker, arm: Arm) -> int:
    return images_seen(arm, len(maker.split(arm).train))


def _training_passes(maker: Maker, arm: Arm) -> float:
    return _views(maker, arm) * forward_passes(arm.run) + maker.sets.smoke * _SMOKE_RUN


def _judging_passes(maker: Maker, piece: Piece) -> float:
    return _measuring_passes(piece.measure or piece.cell.experiment, maker.sets.smoke)


def _measuring_passes(measured: Any, small: bool = False) -> float:
    """The cost of a measure, or of an experiment that measures itself, without the training of runs."""
    own = measured.passes if isinstance(measured, HasCost) else None
    if small:
        return _SMOKE_JUDGING if own is None else _SMOKE_OWN + own
    return _JUDGING_PASSES if own is None else own


def time_per_seed(entry: Entry) -> str:
    """Approximate time of one seed on an idle core, ignoring that entries share some training runs."""
    arms = dict.fromkeys(arm for cell in entry.runnable_cells for arm in arm_chain(cell.experiment))
    work = sum(arm.run.epochs * arm.run.data.max_images * forward_passes(arm.run) for arm in arms)
    judging = sum(
        _measuring_passes(one) for cell in entry.runnable_cells for one in cell.measures or (cell.experiment,)
    )
    return duration((work + judging) / _QUIET_SPEED)


def passes_per_second(seconds: float = 1.0) -> float:
    """Forward passes per second of 32-pixel images through four convolutions in training, on this machine under its
    current load, in the precision that runs have here."""
    network = Convolutions().build().train()
    images = torch.randn(128, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds or not count:
        with torch.autocast("cpu", torch.bfloat16, enabled=has_bf16(on_cuda=False)):  # emulated, it is 8 times slower
            network(images).sum().backward()
        count += 1
    return 3 * 128 * count / (time.perf_counter() - start)
