"""The verb `pretrain`: fit a recipe to images, change it by options, and train it."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vantage.cli.pretrain.minutes import (
    plan_run,
    show_expected_time,
    show_worth,
    threads_by_load,
)
from vantage.cli.pretrain.start import check_start, on_network_of
from vantage.cli.printing.console import INTERRUPTED, Console
from vantage.cli.printing.differences import show_differences
from vantage.cli.reading.arguments import Command, Repeated, Word, read
from vantage.cli.reading.images import absolute, look_at
from vantage.cli.reading.launch import joined_for_a_while
from vantage.cli.reading.options import (
    DeviceOptions,
    LoadingOptions,
    ViewOptions,
    as_started,
    assignments,
    check_devices,
)
from vantage.cli.reading.out_files import check_folder, check_new_run
from vantage.cli.reading.recipe_options import (
    at_some_size,
    find_recipe,
    named_part_paths,
    note_statistics,
    refuse_replaced,
    settable,
    view_size,
    with_learned_views,
    with_named_parts,
)
from vantage.composition.assignments import read_assignments
from vantage.errors import quantity

if TYPE_CHECKING:
    from vantage.training.loop import TrainingOutcome
    from vantage.training.run import Run
    from vantage.training.start.warm_start import WarmStart

__all__ = ["report_end", "pretrain"]

_MINUTES = 30.0
"""Minutes to plan for if neither a recipe nor minutes are given."""


@dataclass(frozen=True)
class PretrainOptions(ViewOptions):
    """The options of `pretrain`."""

    recipe: Annotated[str, Word("RECIPE", positional=True)] = ""
    """A recipe that `vantage recipes` lists, or MODULE:NAME of your own; if omitted, chosen by the plan."""

    out: Annotated[str, Word("RUN")] = ""
    """Folder; if omitted, runs/RECIPE (a plan: runs/planned)."""

    minutes: float | None = None
    """Plan a run of this length; 30 if no recipe is given."""

    backbone: str = ""
    """resnet18 … resnet152, resnet50x2, resnext50_32x4d, wide_resnet50_2, resnet9, tiny_alexnet, convolutions,
    timm:NAME, or MODULE:NAME; the head is adapted to it."""

    optimizer: str = ""
    """sgd, adamw or lars, at a suitable rate; or MODULE:NAME."""

    learning_rate: float | None = None
    """The highest; if omitted, proportional to the batch size."""

    batch_size: int | None = None
    """Images per step, over all devices; if omitted, fitted."""

    epochs: int | None = None
    """Passes; if omitted, the recipe's, more for small sets."""

    seed: int | None = None
    """Seed of all random numbers."""

    init: Annotated[str, Word("RUN|FILE")] = ""
    """Start from any run (networks; optimizer and memory as far as they fit) or a backbone's weights (.safetensors)."""

    learned: Annotated[str, Word("FOLDER")] = ""
    """Folder of `vantage views learn`: the channels for a recipe that splits images by channel."""

    set: Repeated = ()
    """Any field or part that `vantage recipes RECIPE` lists: --set temperature=0.1,
    --set 'negatives=(OtherImages(), Ring())'. May be repeated."""


def pretrain(words: list[str], console: Console) -> int:
    """Train an encoder on images without labels: vantage pretrain --data PATH.

    With --minutes, or without a recipe, the speed of this machine is measured for some seconds, and the plan for that
    time is shown before training. Otherwise the recipe is fitted to the images (batch size, epochs, learning rate,
    memory), and a table shows the changes. Options that you give override both.
    """
    start = time.monotonic()
    command = Command("pretrain", pretrain.__doc__ or "", partial(settable, words))
    options, devices, loading = read(command, words, PretrainOptions, DeviceOptions, LoadingOptions)
    from vantage.planning.sizing import early_changes, override, set_early

    recipe = _recipe(options, console)
    run_at = cache(partial(with_named_parts, recipe, backbone=options.backbone, optimizer=options.optimizer))
    out = check_new_run(Path(options.out)) if options.out else _free_folder(options.recipe and recipe.__name__)
    settings = (*options.set, *_settings(options, as_started(devices, options.set), loading))
    first = early_changes(at_some_size(lambda size: _first_changes(run_at(size), settings, options), options.size))
    hardware = set_early(run_at(224), first).hardware
    check_devices(hardware)
    init = check_start(
        options.init, lambda size: override(run_at(size), _changes(run_at(size), settings)), options.size
    )
    if threads := threads_by_load(hardware, settings, console):
        settings, first = (*settings, f"hardware.threads={threads}"), {**first, "hardware.threads": threads}
    if options.minutes is not None or not options.recipe:
        return _train(_planned(run_at, options, settings, first, console, start), out, init, console, words)
    with joined_for_a_while(hardware.accelerator) as together:
        source, _ = look_at(set_early(run_at(224), first).data, console, together=together)
    size = view_size(options.size, source, console)
    base, changes = set_early(run_at(size), first), _changes(run_at(size), settings)
    fitted_run = base.fit(len(source), changes.get("batch_size"))
    run = override(fitted_run, changes, len(source))
    choices = {*changes, *_named_part_paths(base, options)}
    show_differences(set_early(recipe(size), first), base, fitted_run, run, choices, console)
    note_statistics(recipe, run, console)
    console.notes("run", _summary(run, len(source)))
    show_expected_time(run, source, console)
    return _train(run, out, init, console, words)


def _summary(run: "Run", images: int) -> list[tuple[str, str]]:
    from vantage.cli.printing.summary import summary

    return summary(run, images)


def _recipe(options: PretrainOptions, console: Console) -> "Callable[[int], Run]":
    """The recipe that options name, or that of plans, with the learned views; in a plan, on the network of --init."""
    from vantage.planning.sizing import default_recipe

    chosen = find_recipe(options.recipe) if options.recipe else default_recipe
    if options.init and not options.backbone and (options.minutes is not None or not options.recipe):
        chosen = on_network_of(options.init, chosen)
    return with_learned_views(chosen, options.learned, console)


def _planned(
    run_at: "Callable[[int], Run]",
    options: PretrainOptions,
    settings: Sequence[str],
    early: Mapping[str, Any],
    console: Console,
    start: float,
) -> "Run":
    """The run for the minutes; shows the plan and its changes to the recipe. `run_at` gives the recipe, with the parts
    that options name, at a size of views."""
    from vantage.planning.sizing import PlanOptions, set_early

    plan_options = PlanOptions(
        run_at,
        options.size,
        keep_network=bool(options.backbone or options.init),
        keep_recipe=bool(options.recipe),
        keep_optimizer=bool(options.optimizer),
        changes=lambda run: _changes(run, settings),
    )
    minutes = _MINUTES if options.minutes is None else options.minutes
    run = plan_run(minutes, plan_options, set_early(run_at(224), early), console, start)
    if options.recipe:
        from vantage.durations import in_minutes

        size = run.views.evaluation(0).size
        before = set_early(run_at(size), early)
        choices = {*plan_options.changes(run), *_named_part_paths(run, options)}
        show_differences(before, before, before, run, choices, console, f"planned for {in_minutes(minutes)}")
    return run


def _settings(options: PretrainOptions, devices: DeviceOptions, loading: LoadingOptions) -> list[str]:
    """`PATH=VALUE` for the options that set a field."""
    fields = {"data.path": absolute(options.data), "learning_rate.base": options.learning_rate}
    fields |= {name: getattr(options, name) for name in ("batch_size", "epochs", "seed")}
    return [*assignments(fields), *assignments(vars(devices), "hardware."), *assignments(vars(loading), "data.")]


def _named_part_paths(run: "Run", options: PretrainOptions) -> dict[str, str]:
    """The paths of the parts that options choose by name."""
    return named_part_paths(run, backbone=options.backbone, optimizer=options.optimizer)


def _changes(run: "Run", settings: Sequence[str], name: str = "") -> dict[str, Any]:
    """New values by path; error messages refer to `name`, or to the recipe if it is omitted."""
    return read_assignments(run, settings, lambda path: path != "recipe", name or run.recipe)


def _first_changes(run: "Run", settings: Sequence[str], options: PretrainOptions) -> dict[str, Any]:
    """The changes to a run that is not fitted yet, so that a mistake is reported before the images are read."""
    from vantage.planning.sizing import check_parts

    changes = _changes(run, settings, options.recipe or "the plan")
    refuse_replaced(changes, run, backbone=options.backbone, optimizer=options.optimizer)
    check_parts(run, changes)
    return changes


def _free_folder(recipe: str) -> Path:
    """The first of `runs/RECIPE`, `runs/RECIPE-2`, … that does not exist; without a recipe, of `runs/planned`, …"""
    recipe = recipe or "planned"
    names = (Path("runs") / (recipe if number == 1 else f"{recipe}-{number}") for number in count(1))
    return check_folder(next(folder for folder in names if not folder.exists()))


def _train(run: "Run", out: Path, init: "WarmStart | None", console: Console, words: list[str]) -> int:
    from vantage.training.loop import train

    return report_end(train(run, out, console.progress(), init=init), run, console, words)


def report_end(
    outcome: "TrainingOutcome", run: "Run", console: Console, words: list[str], resumed: Sequence[str] = ()
) -> int:
    """Print how training ended and, for a planned run, whether it helped; returns the exit status. `words` are those
    after `pretrain` in the command that started the run, and `resumed` those after `resume` in this one, if any."""
    console = console.with_modules_of(run)
    again = console.command("resume", *(resumed or (outcome.folder,)))
    if not outcome.finished:
        console.note(f"stopped at step {outcome.step:,}; continue with: {again}")
        return INTERRUPTED
    hint = f"; next: {console.command('evaluate', 'knn', outcome.folder, '--data', 'LABELED_IMAGES')}"
    from vantage import processes

    processes.leave()  # only the first process continues
    console.note(f"finished after {quantity(outcome.step, 'step')}{'' if run.monitoring.minutes else hint}")
    if run.monitoring.minutes:
        try:
            show_worth(run, outcome.folder, console, words)
        except KeyboardInterrupt as interruption:
            interruption.add_note(f"training is complete and saved; whether it helped is shown by: {again}")
            raise
    return 0
