"""`vantage views learn`: views as InfoMin learns them."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vantage.cli.arguments import Command, Repeated, Word, read
from vantage.cli.console import Console
from vantage.cli.files import check_folder
from vantage.cli.options import Images, absolute, look_at
from vantage.cli.planning import suited
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.studies.view_learning import ViewLearning

__all__ = ["learn"]

_INTERRUPTED = 130


@dataclass(frozen=True)
class Learning(Images):
    """The options of `views learn`."""

    out: Annotated[str, Word("FOLDER")]
    """Folder that is written to; asked again with the same folder, an interrupted learning goes on."""

    method: Annotated[str, Word("METHOD", positional=True)]
    """unsupervised, supervised or semi_supervised."""

    size: int | None = None
    """Side of a view in pixels; if omitted, 32, 64 or 224 by the images."""

    epochs: int | None = None
    """Passes over the images; if omitted, the method's."""

    coupling: Literal["volume-preserving", "two-sided", "real-nvp"] = "volume-preserving"
    """Steps of the flow: volume-preserving (InfoMin's VP), two-sided (VP with both sides changed), or real-nvp."""

    colors: Literal["RGB", "YDbDr", "Lab", "YCbCr", "YUV", "YIQ", "HSV", "XYZ"] = "RGB"
    """Color space whose channels go into the flow: RGB and YDbDr in the paper; or Lab, YCbCr, YUV, YIQ, HSV, XYZ."""

    network: Literal["resnet", "convolutions"] = "resnet"
    """Backbone of critics and classifiers: that of cmc, or four convolutions, which a CPU can train."""

    turns: Literal["alternately", "together"] = "alternately"
    """How critics and flow move: one after the other, or in one step, which is half the work."""

    scale: Literal["unchanged", "by-statistics"] = "unchanged"
    """What is done to the flow's channels before critics see them: nothing, or mean and deviation taken out."""

    num_workers: int | None = None
    """Processes that decode images, for sets too large for memory."""

    on_bad_image: Literal["skip", "stop"] = "skip"
    """Leave unreadable images out (up to 1 %), or stop at the first."""

    set: Repeated = ()
    """Any other field, such as --set rates.flow=1e-4. May be repeated."""


def learn(words: list[str], console: Console) -> int:
    """Learn views as InfoMin does: vantage views learn METHOD --data PATH --out FOLDER.

    A flow over the colors of each pixel learns channels that share little (unsupervised), that each predict the label
    (supervised), or both (semi_supervised). Train on them with: vantage pretrain cmc --learned FOLDER. The same command
    again goes on where it was interrupted.
    """
    (options,) = read(Command("views learn", learn.__doc__ or "", _settable), words, Learning)
    out = Path(options.out)
    if (out / "settings.json").exists():
        raise UserError(f"{out} holds a run: give another folder with --out")
    check_folder(out)
    changed = _changed(_chosen(options, options.size or 64), options)
    source, _ = look_at(changed.data, console)
    size = options.size or suited(source, console)
    from vantage.progress import progress_for
    from vantage.studies.view_learning import learn as train

    learned = train(_changed(_chosen(options, size), options), out, progress_for(console.silent))
    if not learned.finished:
        console.note(f"stopped at step {learned.step:,}; the same command again goes on")
        return _INTERRUPTED
    assert learned.last is not None
    console.note(
        f"learned in {learned.step:,} steps; the last state is in {learned.last.file}, the best one in"
        f" {learned.folder / 'best.safetensors'}. Next: vantage pretrain cmc --data IMAGES --learned"
        f" {learned.last.file}"
    )
    console.result(learned.last.file)
    return 0


def _chosen(options: Learning, size: int) -> "ViewLearning":
    """The method with the parts that the options name."""
    from vantage import views
    from vantage.encoders import Convolutions
    from vantage.studies.view_learning import LEARNINGS, Alternately, ByStatistics, Jointly, Unchanged

    methods: dict[str, Any] = {method.__name__: method for method in LEARNINGS}
    name = options.method.replace("-", "_").lower()
    if name not in methods:
        near = did_you_mean(name, methods)
        raise UserError(f"views learn has no method {options.method!r}{near} (methods: {', '.join(methods)})")
    couplings = {"real-nvp": views.RealNVP, "two-sided": views.TwoSided, "volume-preserving": views.VolumePreserving}
    small = (Convolutions(in_channels=1), Convolutions(in_channels=2)) if options.network == "convolutions" else None
    return replace(
        methods[name](size, small),
        flow=views.Flow(couplings[options.coupling]()),
        space=getattr(views, options.colors)(),
        updates=Alternately() if options.turns == "alternately" else Jointly(),
        scaling=Unchanged() if options.scale == "unchanged" else ByStatistics(),
    )


def _changed(learning: "ViewLearning", options: Learning) -> "ViewLearning":
    from vantage.composition.assignments import assigned

    plain = {
        "data.path": absolute(options.data),
        "data.on_bad_image": options.on_bad_image,
        "data.num_workers": options.num_workers,
        "epochs": options.epochs,
    }
    written = [f"{path}={value!r}" for path, value in plain.items() if value is not None]
    return assigned(learning, (*options.set, *written), may_set=lambda path: path != "name", name=learning.name)


def _settable() -> list[str]:
    from vantage.composition.fields import settings_in
    from vantage.studies.view_learning import unsupervised

    return [setting.path for setting in settings_in(unsupervised(64))]
