"""`vantage views learn`: learn views as in InfoMin."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vantage.cli.printing.console import INTERRUPTED, Console
from vantage.cli.printing.disk import bytes_below, size_in_words
from vantage.cli.reading.arguments import Command, Repeated, Word, read
from vantage.cli.reading.images import absolute, look_at
from vantage.cli.reading.options import LoadingOptions, ViewOptions, assignments, check_device
from vantage.cli.reading.out_files import check_folder
from vantage.cli.reading.recipe_options import view_size
from vantage.composition.assignments import assign
from vantage.composition.fields import settings_in
from vantage.composition.suggest import no_such
from vantage.errors import UserError, quantity

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.studies.view_learning import ViewLearning

__all__ = ["learn"]


@dataclass(frozen=True)
class LearnOptions(ViewOptions):
    """The options of `views learn`."""

    out: Annotated[str, Word("FOLDER")]
    """Folder for the learned views; the same command continues after an interruption."""

    method: Annotated[str, Word("METHOD", positional=True)]
    """unsupervised, supervised or semi_supervised."""

    epochs: int | None = None
    """Passes over the images; if omitted, 100."""

    coupling: Literal["volume-preserving", "two-sided", "real-nvp"] = "two-sided"
    """Coupling layers of the flow: two-sided (InfoMin's VP, with F and G), volume-preserving (with F alone, as NICE),
    or real-nvp (InfoMin's NVP)."""

    colors: Literal["RGB", "YDbDr", "Lab", "YCbCr", "YUV", "YIQ", "HSV", "XYZ"] = "RGB"
    """Color space of the flow's input: RGB or YDbDr, as in the paper; or Lab, YCbCr, YUV, YIQ, HSV, XYZ."""

    network: Literal["resnet", "convolutions"] = "resnet"
    """Backbone of critics and classifiers: the one of cmc, or four convolutions, which a CPU can train."""

    turns: Literal["alternately", "together"] = "alternately"
    """Updates of critics and flow: in alternating steps, or together in one step, which halves the work."""

    scale: Literal["unchanged", "by-statistics"] = "unchanged"
    """Scaling of the flow's output before the critics: unchanged, or by-statistics, its mean and standard deviation."""

    set: Repeated = ()
    """Any other field, such as --set learning_rates.generator=1e-4. May be repeated."""


def learn(words: list[str], console: Console) -> int:
    """Learn views as InfoMin does: vantage views learn METHOD --data PATH --out FOLDER.

    A flow over the colors of each pixel learns channels that share little information (unsupervised), that each predict
    the label (supervised), or both (semi_supervised). vantage pretrain cmc --learned FOLDER trains on them. The same
    command continues after an interruption.
    """
    options, loading = read(Command("views learn", learn.__doc__ or "", _settable), words, LearnOptions, LoadingOptions)
    out = Path(options.out)
    if (out / "settings.json").exists():
        raise UserError(f"{out} already holds a run: name another folder with --out")
    check_folder(out)
    first = _learning(options, loading, 64 if options.size is None else options.size)
    check_device(first.device)
    source, _ = look_at(first.data, console)
    size = view_size(options.size, source, console)
    from vantage.studies.view_learning import learn as train

    learning = _with_smaller_batch(_learning(options, loading, size), options, source, console)
    outcome = train(learning, out, console.progress())
    if not outcome.finished:
        console.note(f"stopped at step {outcome.step:,}; the same command continues")
        return INTERRUPTED
    space = outcome.best or outcome.last
    assert space is not None
    console.note(
        f"learned in {quantity(outcome.step, 'step')}; the best state on held-out images is in {space.file}. Next:"
        f" {console.command('pretrain', 'cmc', '--data', 'IMAGES', '--learned', out)}"
    )
    if size := bytes_below(out / "checkpoint"):
        console.note(f"{out / 'checkpoint'} takes {size_in_words(size)} and is no longer needed: you may remove it")
    console.result(space.file)
    return 0


def _method(options: LearnOptions, size: int) -> "ViewLearning":
    """The method, with the parts that the options name."""
    from vantage import views
    from vantage.encoders import Convolutions
    from vantage.studies.view_learning import LEARNINGS, Alternately, ByStatistics, Jointly, Unchanged

    methods: dict[str, Any] = {method.__name__: method for method in LEARNINGS}
    name = options.method.replace("-", "_").lower()
    if name not in methods:
        raise no_such("method", name, methods)
    couplings = {"real-nvp": views.RealNVP, "two-sided": views.TwoSided, "volume-preserving": views.VolumePreserving}
    small = (Convolutions(in_channels=1), Convolutions(in_channels=2)) if options.network == "convolutions" else None
    return replace(
        methods[name](size, small),
        flow=views.Flow(couplings[options.coupling]()),
        space=getattr(views, options.colors)(),
        updates=Alternately() if options.turns == "alternately" else Jointly(),
        scaling=Unchanged() if options.scale == "unchanged" else ByStatistics(),
    )


def _learning(options: LearnOptions, loading: LoadingOptions, size: int) -> "ViewLearning":
    """The learning that the options describe."""
    learning = _method(options, size)
    settings = assignments({"data.path": absolute(options.data), "epochs": options.epochs})
    changes = (*settings, *assignments(vars(loading), "data."))
    return assign(learning, (*options.set, *changes), may_set=lambda path: path != "name", name=learning.name)


def _with_smaller_batch(
    learning: "ViewLearning", options: LearnOptions, source: "Source", console: Console
) -> "ViewLearning":
    """The learning, with a smaller batch if there are fewer images than one takes and none was given."""
    from vantage.studies.view_learning.images import count_training_images

    if any(text.partition("=")[0].strip() == "batch_size" for text in options.set):
        return learning
    images = count_training_images(learning, source)
    fitted = learning.fit(images)
    if fitted.batch_size < learning.batch_size:
        console.note(f"batch_size is {fitted.batch_size} instead of {learning.batch_size}: fitted to {images:,} images")
    return fitted


def _settable() -> list[str]:
    from vantage.studies.view_learning import unsupervised

    return [setting.path for setting in settings_in(unsupervised(64))]
