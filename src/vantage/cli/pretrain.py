"""The verb `pretrain`: from words to a run, fitted to its images, and on to training."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vantage.cli.arguments import Command, Repeated, Word, read
from vantage.cli.console import Console
from vantage.cli.files import check_folder, check_new_run
from vantage.cli.options import Images, absolute, look_at
from vantage.cli.planning import (
    SIZES,
    in_learned_views,
    overridden,
    replaced_in,
    settable,
    suited,
    with_named_parts,
)
from vantage.cli.recipes import find_recipe
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.training.loop import TrainingOutcome
    from vantage.training.run import Run

__all__ = ["ended", "pretrain"]

_INTERRUPTED = 130
_EARLY = ("data", "hardware", "monitoring", "accumulate")
"""What may be set before a run is fitted, since the choice of a batch needs it."""


@dataclass(frozen=True)
class Pretraining(Images):
    """The options of `pretrain`."""

    recipe: Annotated[str, Word("RECIPE", positional=True)]
    """What to train: one of `vantage recipes`, or MODULE:NAME of your own."""

    out: Annotated[str, Word("RUN")] = ""
    """Folder for the run; if omitted, runs/RECIPE."""

    backbone: str = ""
    """resnet18 … resnet152, resnext50_32x4d, wide_resnet50_2, convolutions, timm:NAME, or MODULE:NAME; heads follow
    it."""

    optimizer: Literal["", "sgd", "adamw", "lars"] = ""
    """Another optimizer, at a learning rate that suits it."""

    learning_rate: float | None = None
    """Highest learning rate; if omitted, it follows the batch."""

    size: int | None = None
    """Side of a view in pixels; if omitted, 32, 64 or 224 by the images."""

    batch_size: int | None = None
    """Images of a step, over all devices; if omitted, fitted to the images."""

    epochs: int | None = None
    """Passes over the images; if omitted, the recipe's, more for small sets."""

    devices: int | None = None
    """Devices of this machine to train on."""

    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] | None = None
    """Arithmetic: bf16-mixed, 32-true, 16-mixed or 64-true."""

    seed: int | None = None
    """What all randomness follows from."""

    num_workers: int | None = None
    """Processes that decode images, for sets too large for memory."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """Leave unreadable images out (up to 1 %), or stop at the first."""

    learned: Annotated[str, Word("FOLDER")] = ""
    """Folder of `vantage views learn`: colors for a recipe on channels."""

    set: Repeated = ()
    """Any other field, or a part: --set temperature=0.1, --set 'negatives=(OtherImages(), Ring())'. May be repeated."""


def pretrain(words: list[str], console: Console) -> int:
    """Train an encoder on images without labels: vantage pretrain RECIPE --data PATH --out RUN.

    A recipe is fitted to the images (batch, epochs, learning rate, what is remembered). What changed is printed, and
    what is given here wins. vantage recipes RECIPE shows every path that --set may change.
    """
    command = Command("pretrain", pretrain.__doc__ or "", partial(settable, words))
    (options,) = read(command, words, Pretraining)
    recipe = in_learned_views(find_recipe(options.recipe), options.learned)
    plan = partial(with_named_parts, recipe, backbone=options.backbone, optimizer=options.optimizer)
    out = check_new_run(Path(options.out)) if options.out else _free_folder(recipe.__name__)
    early = _early(_first_changes(plan, options))
    source, _ = look_at(replaced_in(plan(224), early).data, console)
    size = options.size or suited(source, console)
    planned = replaced_in(plan(size), early)
    changes = _changes(plan(size), options)
    fitted = planned.fit(len(source), changes.get("batch_size"))
    run = overridden(fitted, changes)
    before = replaced_in(recipe(size), early)
    _show_differences(before, planned, fitted, run, changes, console)
    return _train(run, out, len(source), console)


def _changes(run: "Run", options: Pretraining) -> dict[str, Any]:
    """New values by path: those of options, then those of `--set`."""
    from vantage.composition.assignments import read_assignments

    plain = {
        "data.path": absolute(options.data),
        "data.on_bad_image": options.on_bad_image,
        "data.num_workers": options.num_workers,
        "learning_rate.base": options.learning_rate,
        "batch_size": options.batch_size,
        "epochs": options.epochs,
        "seed": options.seed,
        "hardware.devices": options.devices,
        "hardware.precision": options.precision,
    }
    written = [f"{path}={value!r}" for path, value in plain.items() if value is not None]
    return read_assignments(run, (*options.set, *written), lambda path: path != "recipe", run.recipe)


def _first_changes(plan: "Callable[[int], Run]", options: Pretraining) -> dict[str, Any]:
    """The changes, before the size is known, so that a mistake is reported before millions of images are looked at."""
    sizes = [options.size] if options.size else [224, *(small for _, small in SIZES)]
    first: UserError | None = None
    for size in sizes:
        try:
            return _changes(plan(size), options)
        except UserError as problem:  # a path may be there at another size
            first = first or problem
    assert first is not None
    raise first


def _early(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in changes.items() if path.partition(".")[0] in _EARLY}


def _free_folder(recipe: str) -> Path:
    """`runs/RECIPE`, or the first of `runs/RECIPE-2`, … that holds no run."""
    names = (Path("runs") / (recipe if number == 1 else f"{recipe}-{number}") for number in count(1))
    return check_folder(next(folder for folder in names if not folder.exists()))


def _show_differences(
    recipe: "Run", planned: "Run", fitted: "Run", run: "Run", changes: Mapping[str, Any], console: Console
) -> None:
    """What differs from the recipe, and why."""
    from vantage.cli.summary import short
    from vantage.training.run import differences

    chosen, fits = ({path for path, *_ in differences(*pair)} for pair in ((recipe, planned), (planned, fitted)))
    rows = []
    for path, before, after in differences(recipe, run):
        if any(path == one or path.startswith(f"{one}.") or one.startswith(f"{path}.") for one in changes):
            reason = "given"
        elif path in fits and path not in chosen and _at(fitted, path) == after:
            reason = "fitted to the images"
        else:
            reason = "follows what was given"
        rows.append((path, short(before), short(after), reason))
    if rows:
        console.notes("changed from the recipe", rows, ("field", "recipe", "this run", "why"))


def _at(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if isinstance(value, tuple) else getattr(value, name)
    return value


def _train(run: "Run", out: Path, images: int, console: Console) -> int:
    from vantage.cli.summary import summary
    from vantage.progress import progress_for
    from vantage.training.loop import train

    console.notes("run", summary(run, images))
    return ended(train(run, out, progress_for(console.silent)), console)


def ended(outcome: "TrainingOutcome", console: Console) -> int:
    """How a training ended, for people and as an exit status."""
    if not outcome.finished:
        console.note(f"stopped at step {outcome.step:,}; continue with: vantage resume {outcome.folder}")
        return _INTERRUPTED
    console.note(
        f"finished after {outcome.step:,} steps; next: vantage evaluate knn {outcome.folder} --data LABELED_IMAGES"
    )
    return 0
