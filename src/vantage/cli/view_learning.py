"""The verb `views learn`, and learned views as the colors of a recipe."""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vantage.cli.arguments import Command, Parsed, flags_of, parse, wants_help
from vantage.cli.console import Console
from vantage.cli.images import absolute, look_at
from vantage.cli.results import check_folder
from vantage.composition.fields import REQUIRED, Leaf, headings, leaves, options, replaced
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.studies.view_learning import ViewLearning
    from vantage.training.run import Run

__all__ = ["in_learned_views", "learn_views"]

_ALIASES = {"data.place": ("--data",), "data.on_bad_image": ("--on-bad-image",), "data.workers": ("--workers",)}
_INTERRUPTED = 130


@dataclass(frozen=True)
class Options:
    """What `views learn` is told beside the fields of its learning."""

    out: str
    """Folder that is written to; asked again with the same folder, an interrupted learning goes on."""

    size: int = 0
    """Side of a view in pixels; 0 chooses 32, 64 or 224 by the short side of the images."""

    coupling: Literal["volume-preserving", "two-sided", "real-nvp"] = "volume-preserving"
    """Steps of the flow: InfoMin's VP, VP with both sides changed, or NVP."""

    colors: Literal["RGB", "YDbDr", "Lab", "YCbCr", "YUV", "YIQ", "HSV", "XYZ"] = "RGB"
    """Color space whose channels go into the flow; the paper takes RGB and YDbDr."""

    network: Literal["resnet", "convolutions"] = "resnet"
    """Backbone of critics and classifiers: that of cmc, or four convolutions, which a CPU can train."""

    turns: Literal["alternately", "together"] = "alternately"
    """How critics and flow move: one after the other, or in one step, which is half the work."""

    scale: Literal["unchanged", "by-statistics"] = "unchanged"
    """What is done to the flow's channels before critics see them: nothing, or mean and deviation taken out."""


def learn_views(words: list[str], console: Console) -> int:
    """Learn views as InfoMin does: vantage views learn METHOD --data PATH --out FOLDER.

    A flow over the colors of each pixel learns channels that share little (unsupervised), that each tell the label
    (supervised), or both (semi_supervised). Train on them with: vantage pretrain cmc --learned FOLDER. The same command
    again goes on where it was interrupted.
    """
    from vantage.studies.view_learning import LEARNINGS

    known = {learning.__name__: learning for learning in LEARNINGS}
    if not words or words[0].startswith("-"):
        if wants_help(words):
            console.result(inspect.cleandoc(learn_views.__doc__ or ""))
            console.result(f"\nThe methods are {', '.join(known)}; vantage views learn METHOD --help tells the fields.")
            return 0
        raise UserError(
            f"views learn needs a method: vantage views learn METHOD --data PATH --out FOLDER ({', '.join(known)})"
        )
    name = words[0].replace("-", "_").lower()
    if name not in known:
        near = did_you_mean(name, known)
        raise UserError(f"views learn has no method {words[0]!r}{near} (methods: {', '.join(known)})")
    return _learn(known[name], words[1:], console)


def _learn(preset: "Callable[..., ViewLearning]", words: list[str], console: Console) -> int:
    own = options(Options)
    if wants_help(words):
        learning = _chosen(preset, {leaf.path: leaf.value for leaf in own}, 64)
        parse(_command(preset, learning), (*own, *_fields(learning)), words)
    first, learning = _read_early(preset, own, words)
    out = Path(first.values["out"])
    _check_folder(out)
    place = absolute(learning.data.path)
    learning = replace(learning, data=replace(learning.data, path=place))
    source, _ = look_at(learning.data, console)
    from vantage.cli.training import suited

    learning = replace(
        _chosen(preset, first.values, first.values["size"] or suited(source, console)), data=learning.data
    )
    asked = parse(_command(preset, learning), (*own, *_fields(learning)), words)
    learning = replaced(learning, {**_changes(asked, _fields(learning)), "data.place": place})
    from vantage.progress import progress_for
    from vantage.studies.view_learning import learn

    return _ended(learn(learning, out, progress_for(console.silent)), console)


def _read_early(
    preset: "Callable[..., ViewLearning]", own: tuple[Leaf, ...], words: list[str]
) -> "tuple[Parsed, ViewLearning]":
    """The options, and a learning that knows where its images are; a mistake is told before these are looked at."""
    plain = tuple(replace(leaf, value="") if leaf.value is REQUIRED else leaf for leaf in own)
    everything = _chosen(preset, {leaf.path: leaf.value for leaf in plain}, 64)
    others = {flag for learning in _variants(preset) for leaf in _fields(learning) for flag in flags_of(leaf)}
    data = tuple(leaf for leaf in _fields(everything) if leaf.path.startswith("data."))
    first = parse(_command(preset, everything), (*own, *data), words, others)
    return first, replaced(everything, _changes(first, data))


def _variants(preset: "Callable[..., ViewLearning]") -> "list[ViewLearning]":
    """Learnings that have every field which some choice of the options brings."""
    shared = {"colors": "RGB"}
    some = [
        {"coupling": "real-nvp", "network": "resnet", "turns": "alternately", "scale": "by-statistics"},
        {"coupling": "two-sided", "network": "convolutions", "turns": "together", "scale": "unchanged"},
    ]
    return [_chosen(preset, {**shared, **chosen}, 64) for chosen in some]


def _chosen(preset: "Callable[..., ViewLearning]", chosen: "dict[str, Any] | Any", size: int) -> "ViewLearning":
    """The method with the parts that the options name."""
    from vantage import views
    from vantage.encoders import Convolutions
    from vantage.studies.view_learning import Alternately, ByStatistics, Jointly, Unchanged

    couplings = {"real-nvp": views.RealNVP, "two-sided": views.TwoSided, "volume-preserving": views.VolumePreserving}
    small = chosen["network"] == "convolutions"
    learning = preset(size, (Convolutions(in_channels=1), Convolutions(in_channels=2)) if small else None)
    return replace(
        learning,
        flow=views.Flow(couplings[chosen["coupling"]]()),
        space=getattr(views, chosen["colors"])(),
        updates=Alternately() if chosen["turns"] == "alternately" else Jointly(),
        scaling=Unchanged() if chosen["scale"] == "unchanged" else ByStatistics(),
    )


def _command(preset: "Callable[..., ViewLearning]", learning: "ViewLearning") -> Command:
    return Command(f"vantage views learn {preset.__name__}", inspect.getdoc(preset) or "", dict(headings(learning)))


def _fields(learning: "ViewLearning") -> tuple[Leaf, ...]:
    """Those that a person may set; where the images come from stands first."""
    known = [replace(leaf, aliases=_ALIASES.get(leaf.path, ())) for leaf in leaves(learning) if leaf.path != "name"]
    return tuple(sorted(known, key=lambda leaf: not leaf.path.startswith("data.")))


def _changes(parsed: Parsed, known: Sequence[Leaf]) -> dict[str, Any]:
    return {leaf.path: parsed.values[leaf.path] for leaf in known if leaf.path in parsed.asked}


def _check_folder(out: Path) -> None:
    if (out / "settings.json").exists():
        raise UserError(f"{out} holds a run: give another folder with --out")
    check_folder(out)


def _ended(learned: Any, console: Console) -> int:
    if not learned.finished:
        console.note(f"stopped at step {learned.step:,}; the same command again goes on")
        return _INTERRUPTED
    console.note(
        f"learned in {learned.step:,} steps; the best state is in {learned.folder / 'best.safetensors'}. Next:"
        f" vantage pretrain cmc --learned {learned.folder} --data IMAGES --out RUN"
    )
    console.result(learned.last.file)
    return 0


def in_learned_views(recipe: "Callable[[int], Run]", words: Sequence[str]) -> "Callable[[int], Run]":
    """The recipe on the learned views that the words name by --learned; the recipe itself where they name none.

    Raises `UserError` where these are not to be found, or the recipe's views are in no color space.
    """
    place = ""
    for word, after in zip(words, [*words, ""][1:], strict=True):
        name, equals, value = word.partition("=")
        place = (value if equals else after) if name == "--learned" else place
    if not place:
        return recipe
    from vantage.views.channels import in_space
    from vantage.views.colors.learned import learned_space

    space = learned_space(place)

    @wraps(recipe)
    def changed(size: int) -> "Run":
        run = recipe(size)
        return replace(run, views=in_space(run.views, space))

    changed(224)
    return changed
