"""`analyse views`: a parameter of the views varied, each value trained and judged."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vantage.cli.arguments import Command, Parsed, flags_of, parse, wants_help
from vantage.cli.console import Console
from vantage.cli.images import absolute, look_at
from vantage.cli.listing import find_recipe
from vantage.cli.results import check_folder
from vantage.cli.training import SIZES, overridden, suited
from vantage.composition.fields import Leaf, headings, leaves, options, replaced
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.studies.sweep import Study, Sweep
    from vantage.training.run import Run

__all__ = ["views"]

_HELD_OUT = 0.2  # of each class, where no test set is named: what `evaluate` holds out
_NOT_THESE = ("recipe", "seed", "epochs", "data.")
_INTERRUPTED = 130


@dataclass(frozen=True)
class Options:
    """What `analyse views` is told beside the fields of the sweep, of I_NCE and of the runs."""

    data: str
    """Labeled images, which are trained on without their labels: folder, list file, .npz/.npy, .parquet, .tar, or
    torchvision:NAME; `#train` picks a part of it."""

    out: str
    """Folder for rows, tables, pictures and runs; one that holds the same sweep is gone on with."""

    test: str = ""
    """Labeled images that I_NCE and accuracies are measured on; without, a fifth of each class of the data, which is
    not trained on."""

    recipe: str = ""
    """The recipe whose views are varied; without, one that suits the sweep."""

    seeds: tuple[int, ...] = (0, 1, 2)
    """Every value is trained once with each."""

    epochs: int = 20
    """Passes of every run over its images; recipes' own are for weeks of sweeps."""

    images: int = 0
    """Train on so many images only, as many of each class; 0: all."""

    size: int = 0
    """Side of a view in pixels; 0 chooses 32, 64 or 224 by the short side of the images."""

    widths: tuple[int, ...] = ()
    """Channels of each convolution of a small backbone, which takes the recipe's place where some are given:
    32 64 128 256 trains 3,000 images of 32 px in some seconds an epoch on one core."""

    baselines: bool = True
    """Whether raw pixels and random encoders are judged too."""

    discard: bool = False
    """Whether the folder of a run is removed as soon as it is measured."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """What to do about unreadable images: leave them out (stops above 1 %), or stop at once."""

    workers: int = 2
    """Threads, and for sets that are streamed processes, that decode images."""


def views(words: list[str], console: Console) -> int:
    """Vary the views of a recipe, train every value under a budget, and draw accuracy against the information that
    views share: vantage analyse views SWEEP --data PATH --out FOLDER [--test PATH] [--values …].

    Sweeps: SWEEPS; or any field by its path, such as crop.scale.0=0.05,0.2,0.8 (the end of a path will do). What is
    done is skipped when the same is asked for again, so that a sweep may be interrupted, and values and seeds added.
    """
    sweeps = _sweeps()
    if not words or words[0].startswith("-"):
        if wants_help(words):
            console.result(inspect.cleandoc(views.__doc__ or "").replace("SWEEPS", ", ".join(sweeps)))
            console.result("\nvantage analyse views SWEEP --help tells the fields of one.")
            return 0
        raise UserError(
            "analyse views needs a sweep first, such as: vantage analyse views crop --data PATH --out FOLDER"
        )
    sweep = _sweep(words[0], sweeps)
    name, words = f"vantage analyse views {words[0]}", words[1:]
    own = (*options(Options), *_fields_of_sweep(sweep), *_fields_of_information())
    first = _first_reading(name, sweep, own, words, console)
    recipe = find_recipe(first["recipe"] or sweep.recipe, console)
    check_folder(Path(first["out"]))
    source, data = _opened(first, console)
    size = first["size"] or suited(source, console)
    planned = _small(recipe(size), first["widths"])
    fitted = planned.fit(len(source)).resized(epochs=first["epochs"])
    asked = parse(_command(name, sweep, fitted), (*own, *_fields_of_run(fitted)), words)
    if "batch" in asked.asked:  # memories follow a batch that is given
        fitted = planned.fit(len(source), asked.values["batch"]).resized(epochs=first["epochs"])
        asked = parse(_command(name, sweep, fitted), (*own, *_fields_of_run(fitted)), words)
    run = replace(overridden(fitted, _changes(asked, _fields_of_run(fitted))), data=data)
    return _made(_study(sweep, run, asked.values, len(source)), source, asked.values, console)


def _made(asked: "Study", source: "Source", values: Mapping[str, Any], console: Console) -> int:
    from vantage.cli.summary import summary
    from vantage.encoding import Work
    from vantage.progress import progress_for
    from vantage.studies.sweep import study, write_sweep

    test, out = _test(values, console), Path(values["out"])
    console.notes("every run", summary(asked.base, len(source)))
    device = {"auto": "auto", "cpu": "cpu", "cuda": "cuda:0"}[asked.base.hardware.accelerator]
    work = Work(device=device, num_workers=max(1, values["workers"]))
    found = study(asked, source, test, out, work, progress_for(console.silent))
    if found.rows:
        for line in found.lines():
            console.result(line)
        console.note("kept in " + ", ".join(map(str, write_sweep(found, out))))
    if not found.finished:
        console.note("stopped; the same command goes on where it was")
        return _INTERRUPTED
    return 0


def _study(sweep: "Sweep", run: "Run", values: Mapping[str, Any], images: int) -> "Study":
    from vantage.evaluate import KNN, LinearCached
    from vantage.studies.analyse.held_out import HeldOutInformation
    from vantage.studies.sweep import Study

    own = replaced(sweep, {leaf.path: values[leaf.path] for leaf in _fields_of_sweep(sweep)})
    told = {leaf.path.partition(".")[2]: values[leaf.path] for leaf in _fields_of_information()}
    protocols = (LinearCached(), KNN(k=min(20, images)))
    return Study(
        own, run, values["seeds"], HeldOutInformation(**told), protocols, values["baselines"], values["discard"]
    )


def _opened(values: Mapping[str, Any], console: Console) -> tuple["Source", Any]:
    """The images to train on, and where a run finds them."""
    from vantage.training.run import Data

    held = 0.0 if values["test"] else _HELD_OUT
    data = Data(
        absolute(values["data"]), values["on_bad_image"], values["workers"], hold_out=held, max_images=values["images"]
    )
    source, told = look_at(data, console)
    console.note(told)
    return source, data


def _test(values: Mapping[str, Any], console: Console) -> "Source":
    """The held-out images: a set of their own, or what `Data.hold_out` leaves."""
    from vantage.data.splits import split
    from vantage.training.run import Data

    data = Data(values["test"] or values["data"], values["on_bad_image"], values["workers"])
    source, told = look_at(data, console)
    if values["test"]:
        console.note(told)
        return source
    return split(source, _HELD_OUT)[1]


def _first_reading(
    name: str, sweep: "Sweep", own: tuple[Leaf, ...], words: list[str], console: Console
) -> Mapping[str, Any]:
    """What can be read before the images are looked at; other fields of the run are left alone."""
    every = [flag for leaf in own for flag in flags_of(leaf)]
    named = next((value for flag, value in zip(words, words[1:], strict=False) if flag == "--recipe"), "")
    named = next((word.partition("=")[2] for word in words if word.startswith("--recipe=")), named)
    recipe = find_recipe(named or sweep.recipe, console)
    sizes = [recipe(size) for size in (224, *(small for _, small in SIZES))]
    if wants_help(words):
        parse(_command(name, sweep, sizes[0]), (*own, *_fields_of_run(sizes[0])), words)
    others = {flag for run in sizes for leaf in _fields_of_run(run) for flag in flags_of(leaf)}
    return parse(Command(name, "", {}), own, words, others - set(every)).values


def _small(run: "Run", widths: tuple[int, ...]) -> "Run":
    """The run with as many convolutions as there are widths for each backbone, if there are any."""
    from vantage.composition.fitting import everywhere
    from vantage.encoders import Encoder
    from vantage.encoders.convolutions import Convolutions

    def smaller(part: Any) -> Any:
        if not isinstance(part, Encoder):
            return part
        return replace(part, backbone=Convolutions(widths, getattr(part.backbone, "in_channels", 3)))

    return replace(run, encoders=everywhere(run.encoders, smaller)) if widths else run


def _sweeps() -> "dict[str, Callable[[], Sweep]]":
    from vantage.studies import sweep

    kinds = (sweep.CropBound, sweep.JitterStrength, sweep.PatchDistance, sweep.BlurWidth, sweep.ColorSpaces)
    return {kind.name: kind for kind in (*kinds, sweep.Ladder, sweep.Operations)}


def _sweep(word: str, sweeps: "Mapping[str, Callable[[], Sweep]]") -> "Sweep":
    from vantage.studies.sweep import field_of

    if "=" in word:
        return field_of(word)
    if word not in sweeps:
        near = did_you_mean(word, sweeps)
        raise UserError(f"there is no sweep {word!r}{near} (sweeps: {', '.join(sweeps)}, or PATH=VALUE,VALUE)")
    return sweeps[word]()


def _fields_of_sweep(sweep: "Sweep") -> tuple[Leaf, ...]:
    """Those that may be given; a path and its values already were."""
    from vantage.studies.sweep import Field

    return () if isinstance(sweep, Field) else tuple(leaves(sweep))


def _fields_of_information() -> tuple[Leaf, ...]:
    from vantage.studies.analyse.held_out import HeldOutInformation

    return tuple(leaves(HeldOutInformation(), "information"))


def _fields_of_run(run: "Run") -> tuple[Leaf, ...]:
    return tuple(leaf for leaf in leaves(run) if not leaf.path.startswith(_NOT_THESE))


def _changes(parsed: Parsed, known: tuple[Leaf, ...]) -> dict[str, Any]:
    return {leaf.path: parsed.values[leaf.path] for leaf in known if leaf.path in parsed.asked}


def _command(name: str, sweep: "Sweep", run: "Run") -> Command:
    about = f"{inspect.cleandoc(type(sweep).__doc__ or '')}\n\nRuns are {run.recipe}'s, fitted to the images."
    return Command(name, about, {"information": "How I_NCE is estimated.", **dict(headings(run))})
