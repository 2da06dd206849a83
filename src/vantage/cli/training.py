"""`pretrain` and `resume`: from words to a run, fitted to its images, and on to training."""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vantage.cli.arguments import Command, Parsed, flags_of, parse, wants_help
from vantage.cli.console import Console
from vantage.cli.images import absolute, look_at
from vantage.cli.listing import find_recipe, first_line
from vantage.cli.results import check_folder
from vantage.cli.view_learning import in_learned_views
from vantage.composition.fields import REQUIRED, Leaf, headings, leaves, options, replaced
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.training.loop import TrainingOutcome
    from vantage.training.run import Run

__all__ = ["pretrain", "resume", "suited"]

SIZES = ((48, 32), (96, 64))
"""Images whose short side is up to the first are seen at the second, in pixels; larger ones at 224."""

_ALIASES = {"data.place": ("--data",), "data.on_bad_image": ("--on-bad-image",), "data.workers": ("--workers",)}
_EARLY = ("data.", "hardware.", "monitoring.", "accumulate")
"""What may be set before a run is fitted, since the choice of a batch needs it."""
_INTERRUPTED = 130


@dataclass(frozen=True)
class Options:
    """What `pretrain` is told beside the fields of its run."""

    out: str
    """Folder that the run is written to; it must not hold a run yet."""

    size: int = 0
    """Side of a view in pixels; 0 chooses 32, 64 or 224 by the short side of the images."""

    learned: str = ""
    """Folder that `vantage views learn` wrote, or a file in it, for recipes that contrast channels, such as cmc: their
    colors are then the learned ones."""


def pretrain(words: list[str], console: Console) -> int:
    """Train an encoder on images without labels: vantage pretrain RECIPE --data PATH --out RUN.

    A recipe fits itself to the images (batch, epochs, learning rate, what is remembered); what it chose is printed, and
    any field that is given here wins. The learning rate follows a batch that is given, and its course the epochs.
    """
    if not words or words[0].startswith("-"):
        if wants_help(words):
            return _help_without_recipe(console)
        raise UserError(
            "pretrain needs a recipe first: vantage pretrain RECIPE --data PATH --out RUN (vantage recipes)"
        )
    recipe, words = in_learned_views(find_recipe(words[0], console), words[1:]), words[1:]
    own = options(Options)
    if wants_help(words):
        run = recipe(_size_in(words))
        parse(_command(recipe, run), (*own, *_fields(run)), words)
    first = _read_early(recipe, own, words)
    out = Path(first.values["out"])
    _check_folder(out)
    early = {path: value for path, value in _changes(first, _fields(recipe(224))).items() if path.startswith(_EARLY)}
    source, _ = look_at(replaced(recipe(224), early).data, console)
    images, size = len(source), first.values["size"] or suited(source, console)
    planned = replaced(recipe(size), early)
    fitted = planned.fit(images, first.values["batch"] if "batch" in first.asked else None)
    asked = parse(_command(recipe, fitted), (*own, *_fields(fitted)), words)
    changes = _changes(asked, _fields(fitted))
    changes["data.place"] = absolute(changes["data.place"])
    run = overridden(fitted, changes)
    _tell_differences(planned, fitted, run, changes, console)
    return _train(run, out, images, console)


def _size_in(words: list[str]) -> int:
    """The size that help is asked for, the papers' unless it is given."""
    found = re.search(r"--size[ =](\d+)", " ".join(words))
    return int(found[1]) if found and int(found[1]) else 224


def _read_early(recipe: "Callable[[int], Run]", own: tuple[Leaf, ...], words: list[str]) -> Parsed:
    """What can be read before the size of the views is known: the fields that there are at every size.

    So a mistake is told before millions of images are looked at.
    """
    sizes = [_fields(recipe(size)) for size in (224, *(small for _, small in SIZES))]
    kinds = [{(leaf.path, str(leaf.annotation)) for leaf in at_size} for at_size in sizes]
    everywhere = set.intersection(*kinds)
    always = tuple(leaf for leaf in sizes[0] if (leaf.path, str(leaf.annotation)) in everywhere)
    others = {flag for at_size in sizes for leaf in at_size for flag in flags_of(leaf)}
    others -= {flag for leaf in always for flag in flags_of(leaf)}
    return parse(_command(recipe, recipe(224)), (*own, *always), words, others)


def resume(words: list[str], console: Console) -> int:
    """Continue a run where it stopped: vantage resume RUN [--hardware.devices 2].

    Fields of hardware, monitoring and data may be changed (--data where the images have moved); a resumed run keeps all
    others.
    """
    from vantage.training import settings
    from vantage.training.run import Data, Hardware, Monitoring, refuse_conflicts

    folder = Leaf("run", str, REQUIRED, "Folder of the run.", positional=True)
    command = Command("vantage resume", resume.__doc__ or "", {})
    if wants_help(words):
        free = {"data": Data(), "hardware": Hardware(), "monitoring": Monitoring()}
        parse(command, (folder, *(leaf for name, part in free.items() for leaf in leaves(part, name))), words)
    if not words or words[0].startswith("-"):
        raise UserError("resume needs the folder of a run first: vantage resume RUN")
    stored = settings.read(Path(words[0]))
    known = _fields(stored)
    run = replaced(stored, _changes(parse(command, (folder, *known), words), known))
    from vantage.progress import progress_for
    from vantage.training import loop

    refuse_conflicts(stored, run)
    place = run.data.place
    moved = ":" not in place and not any(Path(path).exists() for path in (place, place.partition("#")[0]))
    if moved and place == stored.data.path:
        raise UserError(f"the images of the run are not at {place}: say where they are with --data PATH")
    return _ended(loop.resume(Path(words[0]), run, progress_for(console.silent)), console)


def overridden(fitted: "Run", changes: Mapping[str, Any]) -> "Run":
    """A fitted run with the user's values, which always win; the learning rate follows another batch or epochs."""
    if "batch" in changes or "epochs" in changes:
        fitted = fitted.resized(batch_size=changes.get("batch"), epochs=changes.get("epochs"))
    return replaced(fitted, changes)


def _fields(run: "Run") -> tuple[Leaf, ...]:
    """Those that a person may set; where the images come from stands first."""
    known = [replace(leaf, aliases=_ALIASES.get(leaf.path, ())) for leaf in leaves(run) if leaf.path != "recipe"]
    return tuple(sorted(known, key=lambda leaf: not leaf.path.startswith("data.")))


def _changes(parsed: Parsed, known: tuple[Leaf, ...]) -> dict[str, Any]:
    return {
        leaf.path: parsed.values[leaf.path]
        for leaf in known
        if leaf.path in parsed.asked and leaf.path in parsed.values
    }


def _command(recipe: "Callable[[int], Run]", run: "Run") -> Command:
    about = f"{first_line(recipe)}\n\nValues are the recipe's own. They are fitted to the images unless given here."
    return Command(f"vantage pretrain {recipe.__name__}", about, dict(headings(run)))


def _help_without_recipe(console: Console) -> int:
    from vantage.recipes import RECIPES

    console.result(inspect.cleandoc(pretrain.__doc__ or ""))
    console.result(f"\nThe recipes are {', '.join(recipe.__name__ for recipe in RECIPES)}.")
    console.result("vantage pretrain RECIPE --help [--size PIXELS] tells every field of a recipe.")
    return 0


def _check_folder(out: Path) -> None:
    if (out / "settings.json").exists() or (out / "checkpoint").exists():
        raise UserError(f"{out} holds a run already: continue it with `vantage resume {out}`, or give another --out")
    check_folder(out)


def suited(source: "Source", console: Console) -> int:
    """The size of views that suits the images."""
    from vantage.training.feed import usual_size

    side, _ = usual_size(source)
    size = next((chosen for most, chosen in SIZES if side <= most), 224)
    console.note(f"the images' short side is {side} px (median), so views have {size} px; --size chooses another")
    return size


def _tell_differences(planned: "Run", fitted: "Run", run: "Run", changes: Mapping[str, Any], console: Console) -> None:
    """What differs from the recipe, and why."""
    from vantage.cli.summary import short

    fits = {leaf.path: leaf.value for leaf in leaves(fitted)}
    rows = []
    for before, after in zip(leaves(planned), leaves(run), strict=True):
        if before.value != after.value:
            by_fit = "fitted to the images" if fits[after.path] == after.value else "follows what was given"
            reason = "given" if after.path in changes else by_fit
            rows.append((after.path, short(before.value), short(after.value), reason))
    if rows:
        console.notes("changed from the recipe", rows, ("field", "recipe", "this run", "why"))


def _train(run: "Run", out: Path, images: int, console: Console) -> int:
    from vantage.cli.summary import summary
    from vantage.progress import progress_for
    from vantage.training.loop import train

    console.notes("run", summary(run, images))
    return _ended(train(run, out, progress_for(console.silent)), console)


def _ended(outcome: "TrainingOutcome", console: Console) -> int:
    if not outcome.finished:
        console.note(f"stopped at step {outcome.step:,}; continue with: vantage resume {outcome.folder}")
        return _INTERRUPTED
    console.note(
        f"finished after {outcome.step:,} steps; next: vantage evaluate knn {outcome.folder} --data LABELED_IMAGES"
    )
    return 0
