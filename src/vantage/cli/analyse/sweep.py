"""`vantage analyse views`: a sweep over the views, or over any field of a run."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vantage.cli.analyse.sweep_options import SweepOptions, information_settings
from vantage.cli.printing.console import INTERRUPTED, Console, overview
from vantage.cli.printing.disk import bytes_below, size_in_words
from vantage.cli.reading.arguments import Command, read, wants_help
from vantage.cli.reading.images import absolute, look_at
from vantage.cli.reading.options import ComputeOptions, ImageOptions, ViewOptions, assignments
from vantage.cli.reading.out_files import check_folder
from vantage.cli.reading.recipe_options import (
    at_some_size,
    find_recipe,
    for_one_of,
    refuse_replaced,
    view_size,
    with_named_parts,
)
from vantage.composition.assignments import assign, read_assignments, split_values
from vantage.composition.fields import settings_in
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.encoding import Work
    from vantage.evaluate import EvaluationProtocol
    from vantage.studies.analyse.held_out import HeldOutInformation
    from vantage.studies.sweep import Study, Sweep
    from vantage.training.run import Data, Run

__all__ = ["sweep"]

_HELD_OUT = 0.2  # of each class, if no test set is named; the same as in `evaluate`
_COUNTS = [2**power for power in range(30, 2, -1)]  # numbers of images that a run is fitted to on trial
_NEVER_VARY = ("recipe", "seed", "epochs", "data")


def sweep(words: list[str], console: Console) -> int:
    """Vary the views of a recipe, train each value under a budget, and plot accuracy against the information that the
    views share: vantage analyse views SWEEP --data PATH --out FOLDER [--test PATH] [--values …].

    Sweeps: SWEEPS; or any field by its path or the end of its path, such as crop.scale.0=0.05,0.2,0.8; or parts, such
    as 'estimator=InfoNCE(0.1),JCL(0.2)'. Several fields change together, value by value: epochs=10,20 crop.size=16,32
    is two points, (10, 16) and (20, 32). With --grid it is all four combinations. Fields can also follow --set, in
    place of SWEEP: --set epochs=10,20 crop.size=16,32. Finished runs are kept, so the same command continues after an
    interruption, and can add values and seeds. From three seeds on, the table has differences to the first value.
    """
    words, sweeps = _sweep_first(words), _sweeps()
    about = (sweep.__doc__ or "").replace("SWEEPS", ", ".join(sweeps))
    if not words or words[0].startswith("-"):
        return _explain(words, about, console)
    choice, rest = _sweep(words, sweeps)
    field = not hasattr(type(choice), "__dataclass_fields__") or hasattr(choice, "path") or hasattr(choice, "paths")
    name = " ".join(["analyse views", *words[: len(words) - len(rest)]])
    command = Command(name, about if field else type(choice).__doc__ or "", partial(_settable, choice))
    groups = (ViewOptions, SweepOptions, ComputeOptions, *(() if field else (choice,)))
    images, options, computing, *own = read(command, rest, *groups)
    choice = own[0] if own else choice
    check_folder(Path(options.out))
    run_at = partial(with_named_parts, find_recipe(options.recipe or choice.recipe), backbone=options.backbone)
    information = _information(options)
    run_settings = [text for text in options.set if not text.startswith("information.")]
    study = partial(_study, choice, settings=run_settings, options=options, information=information)
    at_some_size(lambda size: _check(partial(study, run_at(size))), images.size)
    work = computing.work(console)
    source, data = _open(images, options, computing, console)
    fitted_study = study(run_at(view_size(images.size, source, console)), len(source))
    fitted_study = replace(fitted_study, base=replace(fitted_study.base, data=data), protocols=_protocols(source))
    return _run(fitted_study, source, _test(images, options, computing, console), Path(options.out), work, console)


def _check(study_at: "Callable[[int], Study]") -> None:
    """Report a mistake before the images are read: what does not fit, however many images there are."""
    from vantage.training.start.try_parts import check_groups

    def check_at(images: int) -> None:
        study = study_at(images)
        for point in study.sweep.points(study.base):
            if point.run.parts > 1:
                check_groups(point.run)

    for_one_of(_COUNTS, check_at)


def _explain(words: list[str], about: str, console: Console) -> int:
    """Print help if no sweep is named. Raises `UserError` unless help was asked for."""
    if not wants_help(words):
        raise UserError(
            "analyse views needs a sweep first, such as: vantage analyse views crop --data PATH --out FOLDER"
            " (or several values, such as --set epochs=10,20)"
        )
    console.result(overview("analyse views SWEEP [--option value …]", about))
    console.result("\nvantage analyse views SWEEP --help shows the options of one sweep.")
    return 0


def _run(study: "Study", source: "Source", test: "Source", out: Path, work: "Work", console: Console) -> int:
    from vantage.cli.printing.summary import summary
    from vantage.studies.sweep import run_study, write_sweep

    console.notes("every run", summary(study.base, len(source)))
    console.note(_points(study))
    result = run_study(study, source, test, out, work, console.progress())
    if result.rows:
        for line in result.lines():
            console.result(line)
        console.note("saved in " + ", ".join(map(str, write_sweep(result, out))))
    if not result.finished:
        console.note("stopped; the same command continues")
        return INTERRUPTED
    runs = out / "runs"
    if size := bytes_below(runs):
        console.note(
            f"the runs in {runs} take {size_in_words(size)}: if you only need the table, remove them (--discard)"
        )
    return 0


def _study(
    sweep: "Sweep",
    run: "Run",
    images: int,
    settings: list[str],
    options: SweepOptions,
    information: "HeldOutInformation | None",
) -> "Study":
    """The study of a sweep, with the run fitted to a number of images."""
    from vantage.planning.sizing import override
    from vantage.studies.sweep import Study

    changes = _changes(run, settings, options)
    base = override(run.fit(images, changes.get("batch_size")).rescale(epochs=options.epochs), changes, images)
    return Study(sweep, base, options.seeds, information, baselines=options.baselines, discard=options.discard)


def _protocols(source: "Source") -> "tuple[EvaluationProtocol, ...]":
    """How runs on these images are evaluated: with no more neighbors than there are labels."""
    from vantage.data.sources.source import labels_of
    from vantage.evaluate import KNN, LinearCached

    labeled = int((labels_of(source) >= 0).sum())
    return LinearCached(), KNN(k=max(1, min(20, labeled)))


def _information(options: SweepOptions) -> "HeldOutInformation | None":
    from vantage.studies.analyse.held_out import HeldOutInformation

    settings = information_settings(options)
    return assign(HeldOutInformation(), settings, name="information") if options.information else None


def _points(study: "Study") -> str:
    """How many runs a sweep trains, and its points. Seeds that do not count from 0 are named: `--seeds 5` is one."""
    labels, seeds = [point.label for point in study.sweep.points(study.base)], len(study.seeds)
    counts = " × ".join(f"{n} {word}{'s' * (n > 1)}" for n, word in ((len(labels), "point"), (seeds, "seed")))
    named = "" if study.seeds == tuple(range(seeds)) else f" ({', '.join(map(str, study.seeds))})"
    return f"{counts}{named}: {study.sweep.axis} = {'; '.join(labels)}"


def _open(
    images: ImageOptions, options: SweepOptions, computing: ComputeOptions, console: Console
) -> "tuple[Source, Data]":
    """The images to train on, and the settings by which a run loads them."""
    from vantage.training.run import Data

    hold_out = 0.0 if options.test else _HELD_OUT
    workers = 2 if computing.num_workers is None else computing.num_workers
    path = absolute(images.data)
    data = Data(path, computing.on_bad_image, workers, hold_out=hold_out, max_images=options.images)
    source, summary = look_at(data, console)
    console.note(summary)
    return source, data


def _test(images: ImageOptions, options: SweepOptions, computing: ComputeOptions, console: Console) -> "Source":
    """The test images: those of --test, or those that `Data.hold_out` excludes from training."""
    from vantage.data.splits import train_and_test
    from vantage.training.run import Data

    if options.test:
        return computing.open(options.test, console)
    return train_and_test(look_at(Data(images.data, computing.on_bad_image), console)[0], None)[1]


def _changes(run: "Run", settings: list[str], options: SweepOptions) -> dict[str, Any]:
    settings = [*settings, *assignments({"batch_size": options.batch_size})]
    changes = read_assignments(run, settings, lambda path: path.partition(".")[0] not in _NEVER_VARY, run.recipe)
    refuse_replaced(changes, run, backbone=options.backbone)
    return changes


def _sweeps() -> "dict[str, Callable[[], Sweep]]":
    from vantage.studies import sweep

    kinds = (sweep.CropBound, sweep.JitterStrength, sweep.PatchDistance, sweep.BlurWidth, sweep.ColorSpaces)
    return {kind.name: kind for kind in (*kinds, sweep.Ladder, sweep.Operations)}


def _sweep(words: list[str], sweeps: "dict[str, Callable[[], Sweep]]") -> "tuple[Sweep, list[str]]":
    """The sweep, and the words after it."""
    from vantage.studies.sweep import parse_fields

    count = next((n for n, word in enumerate(words) if "=" not in word or word.startswith("-")), len(words))
    grid = "--grid" in words
    if count:
        return parse_fields(*words[:count], grid=grid), words[count:]
    if words[0] not in sweeps:
        near = did_you_mean(words[0], sweeps)
        raise UserError(f"there is no sweep {words[0]!r}{near} (sweeps: {', '.join(sweeps)}, or PATH=VALUE,VALUE)")
    if grid:
        raise UserError(f"--grid combines several fields, and {words[0]} is a sweep of its own: leave --grid out")
    return sweeps[words[0]](), words[1:]


def _sweep_first(words: list[str]) -> list[str]:
    """The words with one field after each `--set`. If no sweep comes first, the fields that `--set` gives several
    values are moved to the front: they are the sweep."""
    words = _one_field_each(words)
    if not words or not words[0].startswith("-"):
        return words
    settings = [n for n, word in enumerate(words[:-1]) if word == "--set"]
    varied = [n for n in settings if len(split_values(words[n + 1].partition("=")[2])) > 1]
    others = [word for n, word in enumerate(words) if n not in varied and n - 1 not in varied]
    return [words[n + 1] for n in varied] + others


def _one_field_each(words: list[str]) -> list[str]:
    """The words, with a `--set` before every field that follows one."""
    separate, setting = list[str](), False
    for word in words:
        flag, equals, value = word.partition("=")
        if word.startswith("-"):
            setting = flag == "--set"
        elif setting and separate[-1] != "--set":
            separate.append("--set")
        separate += ["--set", value] if setting and equals and flag == "--set" else [word]
    return separate


def _settable(sweep: "Sweep") -> Iterable[str]:
    from vantage.studies.analyse.held_out import HeldOutInformation

    every = [setting.path for setting in settings_in(find_recipe(sweep.recipe)(224))]
    return every + [setting.path for setting in settings_in(HeldOutInformation(), "information")]
