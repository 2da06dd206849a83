"""Time on the command line: plan for some minutes, show how long a run will take, and judge whether it helped."""

import json
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from vantage.cli.printing.console import Console
from vantage.cli.reading.images import from_any_folder, look_at
from vantage.durations import check_minutes
from vantage.errors import UserError, quantity
from vantage.machine.launchers import is_one_of_several

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.planning.sizing import PlanOptions
    from vantage.planning.speed import Speed
    from vantage.training.run import Data, Hardware, Run

__all__ = ["show_expected_time", "plan_run", "show_worth", "threads_by_load"]

_PLAN = "VANTAGE_PLANNED_RUN"
"""Environment variable through which the first process passes its plan to the processes that it starts."""
_LONG = 3 * 3600
_REPLACED = ("--data", "--minutes", "--out", "--import")
"""Options that a longer plan is given anew, or that name what exists by then."""


def _without_hold_out(data: "Data") -> "Data":
    """The same data settings without held-out images."""
    return replace(data, hold_out=0.0, max_images=0)


def threads_by_load(hardware: "Hardware", settings: Sequence[str], console: Console) -> int:
    """The number of threads to train with if other programs use cores of this machine, with a note about it; else 0.

    A run keeps this number, since a resumed run with another one would round differently. The result is always 0 for
    several processes, for a run on a GPU, and if `settings` set the number of threads.
    """
    import torch

    from vantage.machine.devices import uses_cuda
    from vantage.machine.load import threads_for_free_cores

    on_gpu = uses_cuda(hardware.accelerator)
    several = hardware.processes > 1 or is_one_of_several()
    if on_gpu or several or any(one.startswith(("hardware=", "hardware.threads=")) for one in settings):
        return 0
    threads = threads_for_free_cores()
    if threads:
        console.note(
            f"other programs are using cores of this machine: training with {quantity(threads, 'thread')}, even"
            f" after they end (--set hardware.threads={torch.get_num_threads()} uses all cores)"
        )
    return threads


def plan_run(minutes: float, options: "PlanOptions", early: "Run", console: Console, start: float) -> "Run":
    """Plan a run for some minutes, and show it in a table.

    `early` is a run with the settings that do not depend on the images, which it names. The speed is measured once:
    processes that the first one starts use its plan. Raises `UserError` if another program has started several
    processes, since each would measure a different speed.
    """
    from vantage.composition.codec import decode, encode
    from vantage.durations import in_minutes
    from vantage.planning import speed
    from vantage.planning.plan import make_plan, rows
    from vantage.progress import counting
    from vantage.training.images import held_out_part
    from vantage.training.run import Run

    if is_one_of_several():
        if _PLAN not in os.environ:
            raise UserError(
                "a plan is made by one process, but several were started: use --devices in place of a launcher, or"
                " name a recipe and --epochs"
            )
        return decode(json.loads(os.environ[_PLAN]), Run)
    check_minutes(minutes, f"--minutes {minutes:g}")
    source = _open(early, options, console)
    console.note("measuring the speed of this machine on these images")
    with counting(console.progress(), "decoding images") as report:

        def measure(run: Run, source: "Source", seconds: float = speed.SHORT_LOOK) -> speed.Speed:
            found = speed.measure_speed(run, source, seconds, report)
            if seconds <= speed.SHORT_LOOK:  # the chosen one is measured again, for longer, which the plan shows
                _show_speed(run, found, console)
            return found

        plan = make_plan(source, minutes, options, measure=measure, start=start)
    held_out_images = len(held_out_part(source, plan.run.data)) if plan.run.data.hold_out else 0
    console.notes(f"plan for {in_minutes(minutes)}", rows(plan, held_out_images))
    if plan.run.hardware.devices > 1:
        os.environ[_PLAN] = json.dumps(encode(plan.run))
    return plan.run


def _show_speed(run: "Run", speed: "Speed", console: Console) -> None:
    from vantage.planning.words import describe_networks, view_sides

    network = f"{describe_networks(run)}, views of {view_sides(run)} px"
    console.note(f"  {network}: {speed.images_per_second(run):,.0f} images/s")


def _open(early: "Run", options: "PlanOptions", console: Console) -> "Source":
    """The images of a plan. What BatchNorm allows at no size of views is refused before all images are tried, which may
    take hours."""
    from vantage.data import open_source
    from vantage.planning.suitable_rungs import check_rungs

    if early.parts > 1 and early.data.path:
        check_rungs(open_source(early.data.path), options)
    return look_at(_without_hold_out(early.data), console)[0]


def _whole_minutes(training: float) -> int:
    """The minutes that a plan probably had whose training takes this many: whole minutes, above ten every fifth."""
    step = 5 if training > 10 else 1
    return max(1, math.ceil(training / step)) * step


def _without(words: Sequence[str], options: Sequence[str]) -> Iterator[str]:
    """The words of a command without these options, each of which takes a value."""
    left = iter(words)
    for word in left:
        name, equals, _ = word.partition("=")
        if name not in options:
            yield word
        elif not equals:
            next(left, None)


def show_expected_time(run: "Run", source: "Source", console: Console) -> None:
    """Note how long a run will take, from a short trial, and if that is long, how to plan for less time. Nothing is
    noted of a run whose bank is sharded over several processes, since the trial is one process alone."""
    from vantage.composition.fitting import parts_of

    sharded = any(getattr(part, "sharded", False) for part in parts_of(run.branches))
    if console.silent or (sharded and run.hardware.processes > 1):
        return
    from vantage.durations import clock, duration
    from vantage.planning import speed

    measurement = speed.measure_speed(run, source, 1.0)
    seconds = measurement.seconds(run, len(source))
    console.note(
        f"training will take about {duration(seconds)} ({run.batch_size / measurement.step:,.1f} images/s here), until"
        f" {clock(seconds)}"
    )
    if seconds > _LONG:
        console.note("for less, --minutes 30 plans network, size of views and epochs for that time")


def show_worth(run: "Run", folder: Path, console: Console, words: Sequence[str]) -> None:
    """Note whether a planned run helped, and what to do next; `words` are those of the command that started it."""
    if console.silent:
        return
    from vantage.encoding import Work
    from vantage.evaluate.sanity_check import sanity_check

    images = ("--data", run.data.path)
    try:
        source, _ = look_at(_without_hold_out(run.data), console)
        judgment = sanity_check(folder, source, Work(num_workers=max(1, run.data.num_workers)))
    except UserError as problem:
        console.note(f"whether training helped was not judged: {problem}")
        return
    for line in judgment.lines:
        console.note(line)
    minutes = 10 * _whole_minutes(run.monitoring.minutes)
    kept = from_any_folder(_without(words, _REPLACED))
    longer = console.command("pretrain", *kept, *images, "--minutes", minutes)
    use = (
        console.command("embed", folder, *images, "--out", "features.parquet"),
        console.command("export", folder, "--to", "safetensors"),
    )
    neighbors = console.command("evaluate", "retrieval", folder, *images)
    page = console.command("report", folder, *images)
    lines = {True: (*use, longer), False: (neighbors, longer), None: (page, *use, longer)}
    for line in lines[judgment.beats_baselines]:
        console.note(f"next: {line}")
