"""The verb `evaluate`: evaluate a run by a protocol."""

from dataclasses import dataclass
from typing import Annotated, Any

from vantage.cli.evaluate.protocols import protocol_help, protocol_named, protocols
from vantage.cli.evaluate.results import show_result
from vantage.cli.evaluate.tasks import TaskImages, kind_of_images
from vantage.cli.printing.console import Console, catalog, overview
from vantage.cli.reading.arguments import Command, Repeated, Word, read, wants_help
from vantage.cli.reading.options import EvaluatedOptions, ImageOptions, RunOrWeights, WorkOptions
from vantage.cli.reading.out_files import result_file_or_none
from vantage.composition.assignments import assign
from vantage.composition.suggest import no_such
from vantage.errors import UserError

__all__ = ["evaluate"]


@dataclass(frozen=True)
class AnnotatedOptions:
    """The images for a detector."""

    data: Annotated[str, Word("PATH")]
    """Annotated images to train on: a COCO file such as coco/annotations/instances_train2017.json (with #FOLDER if its
    images are elsewhere), or a PASCAL VOC folder with its split, such as VOC2007#trainval. Separate several by
    commas."""


@dataclass(frozen=True)
class MaskedOptions:
    """The images for a segmentation."""

    data: Annotated[str, Word("PATH")]
    """Two folders, IMAGES#MASKS: masks are PNGs of class indices at the same paths as their images; 255 is ignored."""

    classes: Annotated[str, Word("FILE")] = ""
    """File with one class name per line, starting with index 0; if omitted, classes are numbered up to the largest
    index in the masks."""


@dataclass(frozen=True)
class EvaluateOptions:
    """The options of every protocol."""

    test: Annotated[str, Word("PATH")] = ""
    """Test images, named like --data; if omitted, a fifth of the data is held out."""

    out: Annotated[str, Word("FILE")] = ""
    """JSON file of the result; if omitted, in RUN/evaluations."""

    set: Repeated = ()
    """A part of the protocol, or a field: --set sizes.test_side=400; may be repeated."""


def evaluate(words: list[str], console: Console) -> int:
    """Evaluate a run on labeled images: vantage evaluate knn RUN --data PATH.

    If --test is omitted, a fifth of each class is held out. Start with knn.
    """
    if not words or words[0].startswith("-"):
        if wants_help(words):
            _list_protocols(console)
            return 0
        raise UserError("evaluate needs a protocol first, such as: vantage evaluate knn RUN --data PATH")
    name, words = words[0], words[1:]
    if name == "retrieval":
        from vantage.cli.evaluate.retrieval import retrieval

        return retrieval(words, console)
    if name == "transfer":
        from vantage.cli.evaluate.transfer import transfer

        return transfer(words, console)
    if name not in (kinds := protocols()) and ":" not in name:
        raise no_such("protocol", name, (*kinds, "transfer"))
    return _evaluate(name, protocol_named(name), words, console)


def _evaluate(name: str, protocol: Any, words: list[str], console: Console) -> int:
    images = {"boxes": AnnotatedOptions, "masks": MaskedOptions, "classes": ImageOptions}[kind_of_images(protocol)]
    command = Command(f"evaluate {name}", protocol_help(type(protocol)))
    groups = (RunOrWeights, images, EvaluateOptions, protocol, EvaluatedOptions, WorkOptions)
    run, images, options, protocol, network, computing = read(command, words, *groups)
    from vantage.evaluate import evaluate as run_protocol
    from vantage.frozen.encoder import load

    protocol = assign(protocol, options.set, name=name)
    load(run.folder, network.network)  # report a mistake in the run before the images are read
    out = result_file_or_none(options.out, run.home)
    if kind_of_images(protocol) == "classes":
        computing.check(images.data, options.test)
    classes = getattr(images, "classes", "")
    how = {**vars(network), "work": computing.work(console), "out": out}
    sources = TaskImages(computing, console).of(protocol, images.data, options.test, classes)
    show_result(run_protocol(run.folder, protocol, *sources, **how), console, run.folder, out)
    return 0


def _list_protocols(console: Console) -> None:
    """Print every protocol in a line or two."""
    from vantage.cli.evaluate.transfer import transfer

    console.result(overview("evaluate PROTOCOL RUN [--option value …]", evaluate.__doc__) + "\n")
    kinds = protocols()
    about = {name: protocol_help(kind) for name, kind in (*kinds.items(), ("transfer", transfer))}
    about |= {name: f"Short for {kind.name}." for name, kind in kinds.items() if kind.name != name}  # pyright: ignore
    console.result(catalog(about))
    console.result("\nvantage evaluate PROTOCOL --help shows its options; your own is MODULE:NAME.")
