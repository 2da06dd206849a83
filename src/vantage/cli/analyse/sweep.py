"""`vantage analyse views`: a parameter of the views, or any field, varied; each value trained and judged."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vantage.cli.arguments import Command, Repeated, Word, read, wants_help
from vantage.cli.console import Console, paragraphs
from vantage.cli.files import check_folder
from vantage.cli.options import BadImages, Computing, Images, absolute, look_at
from vantage.cli.planning import overridden, suited, with_named_parts
from vantage.cli.recipes import find_recipe
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.studies.sweep import Study, Sweep
    from vantage.training.run import Data, Run

__all__ = ["sweep"]

_HELD_OUT = 0.2  # of each class, where no test set is named: what `evaluate` holds out
_NOT_THESE = ("recipe", "seed", "epochs", "data")
_INTERRUPTED = 130


@dataclass(frozen=True)
class Sweeping:
    """The options of `analyse views`."""

    out: Annotated[str, Word("FOLDER")]
    """Folder for rows, tables, pictures and runs; one that holds the same sweep is gone on with."""

    test: Annotated[str, Word("PATH")] = ""
    """Labeled images that I_NCE and accuracies are measured on; if omitted, a fifth of each class of the data, which is
    not trained on."""

    recipe: Annotated[str, Word("RECIPE")] = ""
    """The recipe whose views are varied, or MODULE:NAME; if omitted, one that suits the sweep."""

    backbone: str = ""
    """Another backbone, as pretrain has it; convolutions trains 3,000 images of 32 px in some seconds an epoch on one
    core."""

    seeds: tuple[int, ...] = (0, 1, 2)
    """Every value is trained once with each."""

    epochs: int = 20
    """Passes of every run over its images; recipes' own are for weeks of sweeps."""

    batch_size: int | None = None
    """Images of a step; if omitted, fitted to the images."""

    images: int = 0
    """Train on this many images only, as many of each class; 0: all."""

    size: int | None = None
    """Side of a view in pixels; if omitted, 32, 64 or 224 by the images."""

    baselines: bool = True
    """Judge raw pixels and random encoders too."""

    discard: bool = False
    """Remove the folder of a run as soon as it is measured."""

    set: Repeated = ()
    """A field of every run, as pretrain has it, or of how I_NCE is estimated: --set information.negatives=100. May be
    repeated."""


def sweep(words: list[str], console: Console) -> int:
    """Vary the views of a recipe, train every value under a budget, and draw accuracy against the information that
    views share: vantage analyse views SWEEP --data PATH --out FOLDER [--test PATH] [--values …].

    Sweeps: SWEEPS; or any field by its path, such as crop.scale.0=0.05,0.2,0.8 (the end of a path will do), or parts:
    'estimator=InfoNCE(0.1),JCL(0.2)'. Several move together: epochs=10,20 crop.size=16,32. What is done is skipped when
    the same is asked for again, so that a sweep may be interrupted, and values and seeds added.
    """
    known = _sweeps()
    about = (sweep.__doc__ or "").replace("SWEEPS", ", ".join(known))
    if not words or words[0].startswith("-"):
        if wants_help(words):
            console.result(paragraphs(about))
            console.result("\nvantage analyse views SWEEP --help shows the options of one.")
            return 0
        raise UserError(
            "analyse views needs a sweep first, such as: vantage analyse views crop --data PATH --out FOLDER"
        )
    chosen, words = _sweep(words, known)
    field = not hasattr(type(chosen), "__dataclass_fields__") or hasattr(chosen, "path") or hasattr(chosen, "paths")
    command = Command("analyse views", about if field else type(chosen).__doc__ or "", partial(_settable, chosen))
    groups = (Images, Sweeping, BadImages, Computing, *(() if field else (chosen,)))
    images, options, bad, computing, *own = read(command, words, *groups)
    chosen = own[0] if own else chosen
    check_folder(Path(options.out))
    plan = partial(with_named_parts, find_recipe(options.recipe or chosen.recipe), backbone=options.backbone)
    information = [text.partition(".")[2] for text in options.set if text.startswith("information.")]
    of_run = [text for text in options.set if not text.startswith("information.")]
    _changes(plan(options.size or 224), of_run, options)  # a mistake is reported before the images are looked at
    source, data = _open(images, options, bad, computing, console)
    planned = plan(options.size or suited(source, console))
    changes = _changes(planned, of_run, options)
    fitted = planned.fit(len(source), changes.get("batch_size")).resized(epochs=options.epochs)
    run = replace(overridden(fitted, changes), data=data)
    study = _study(chosen, run, options, information, len(source))
    return _make(study, source, _test(images, options, bad, computing, console), options, computing, console)


def _make(
    asked: "Study", source: "Source", test: "Source", options: Sweeping, computing: Computing, console: Console
) -> int:
    from vantage.cli.summary import summary
    from vantage.progress import progress_for
    from vantage.studies.sweep import study, write_sweep

    out = Path(options.out)
    console.notes("every run", summary(asked.base, len(source)))
    result = study(asked, source, test, out, computing.work(console), progress_for(console.silent))
    if result.rows:
        for line in result.lines():
            console.result(line)
        console.note("kept in " + ", ".join(map(str, write_sweep(result, out))))
    if not result.finished:
        console.note("stopped; the same command goes on where it was")
        return _INTERRUPTED
    return 0


def _study(sweep: "Sweep", run: "Run", options: Sweeping, information: list[str], images: int) -> "Study":
    from vantage.composition.assignments import assigned
    from vantage.evaluate import KNN, LinearCached
    from vantage.studies.analyse.held_out import HeldOutInformation
    from vantage.studies.sweep import Study

    shared = assigned(HeldOutInformation(), information, name="information")
    protocols = (LinearCached(), KNN(k=min(20, images)))
    return Study(sweep, run, options.seeds, shared, protocols, options.baselines, options.discard)


def _open(
    images: Images, options: Sweeping, bad: BadImages, computing: Computing, console: Console
) -> "tuple[Source, Data]":
    """The images to train on, and where a run finds them."""
    from vantage.training.run import Data

    held_out = 0.0 if options.test else _HELD_OUT
    workers = 2 if computing.num_workers is None else computing.num_workers
    path = absolute(images.data)
    data = Data(path, bad.on_bad_image, workers, hold_out=held_out, max_images=options.images)
    source, summary = look_at(data, console)
    console.note(summary)
    return source, data


def _test(images: Images, options: Sweeping, bad: BadImages, computing: Computing, console: Console) -> "Source":
    """The held-out images: a set of their own, or what `Data.hold_out` leaves."""
    from vantage.data.splits import split
    from vantage.training.run import Data

    if options.test:
        return bad.open(options.test, computing.num_workers, console)
    return split(look_at(Data(images.data, bad.on_bad_image), console)[0], _HELD_OUT)[1]


def _changes(run: "Run", written: list[str], options: Sweeping) -> dict[str, Any]:
    from vantage.composition.assignments import read_assignments

    if options.batch_size is not None:
        written = [*written, f"batch_size={options.batch_size}"]
    return read_assignments(run, written, lambda path: path.partition(".")[0] not in _NOT_THESE, run.recipe)


def _sweeps() -> "dict[str, Callable[[], Sweep]]":
    from vantage.studies import sweep

    kinds = (sweep.CropBound, sweep.JitterStrength, sweep.PatchDistance, sweep.BlurWidth, sweep.ColorSpaces)
    return {kind.name: kind for kind in (*kinds, sweep.Ladder, sweep.Operations)}


def _sweep(words: list[str], known: "dict[str, Callable[[], Sweep]]") -> "tuple[Sweep, list[str]]":
    """What is varied, and the words after it."""
    from vantage.studies.sweep import field_of

    count = next((n for n, word in enumerate(words) if "=" not in word or word.startswith("-")), len(words))
    if count:
        return field_of(*words[:count]), words[count:]
    if words[0] not in known:
        near = did_you_mean(words[0], known)
        raise UserError(f"there is no sweep {words[0]!r}{near} (sweeps: {', '.join(known)}, or PATH=VALUE,VALUE)")
    return known[words[0]](), words[1:]


def _settable(sweep: "Sweep") -> Iterable[str]:
    from vantage.composition.fields import settings_in
    from vantage.studies.analyse.held_out import HeldOutInformation

    every = [setting.path for setting in settings_in(find_recipe(sweep.recipe)(224))]
    return every + [setting.path for setting in settings_in(HeldOutInformation(), "information")]
