"""The verb `evaluate`: a run judged by a protocol."""

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from vantage.cli.arguments import Command, Repeated, Word, read, wants_help
from vantage.cli.console import Console, columns, paragraphs
from vantage.cli.evaluate.protocols import described, protocol_named, protocols
from vantage.cli.evaluate.tasks import TaskImages, kind_of_images
from vantage.cli.files import file_or_kept
from vantage.cli.options import BadImages, Computing, Images, Network, RunFolder
from vantage.composition.suggest import did_you_mean
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.evaluate import Result

__all__ = ["evaluate", "show_result"]


@dataclass(frozen=True)
class AnnotatedImages:
    """Images of a detector."""

    data: Annotated[str, Word("PATH")]
    """Annotated images to train on: a COCO file such as coco/annotations/instances_train2017.json (with #FOLDER where
    its images lie elsewhere), or a folder of PASCAL VOC with its split, such as VOC2007#trainval; several with commas
    between."""


@dataclass(frozen=True)
class MaskedImages:
    """Images of a segmentation."""

    data: Annotated[str, Word("PATH")]
    """Two folders, IMAGES#MASKS: masks are PNGs of class indices with the paths of their images; 255 counts nowhere."""

    classes: Annotated[str, Word("FILE")] = ""
    """File with the name of a class on each line, from index 0 on; if omitted, classes are numbered up to the largest
    index in the masks."""


@dataclass(frozen=True)
class Evaluating:
    """The options of every protocol."""

    test: Annotated[str, Word("PATH")] = ""
    """Test images, named as --data is; if omitted, a fifth of the data (of each class, where it has them) is held
    out."""

    baselines: bool = False
    """Judge raw pixels (where they can be judged) and a random encoder as well."""

    out: Annotated[str, Word("FILE")] = ""
    """File for the result, as JSON; if omitted, it is kept in RUN/evaluations."""

    set: Repeated = ()
    """A field of a part of the protocol, or the part, such as --set sizes.test_side=400. May be repeated."""


def evaluate(words: list[str], console: Console) -> int:
    """Judge a run by labeled images: vantage evaluate knn RUN --data PATH.

    Without --test a fifth of each class is held out for testing.
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
    if name not in (known := protocols()) and ":" not in name:
        every = (*known, "transfer")
        raise UserError(f"there is no protocol {name!r}{did_you_mean(name, every)} (protocols: {', '.join(every)})")
    return _judge(name, protocol_named(name), words, console)


def _judge(name: str, protocol: Any, words: list[str], console: Console) -> int:
    images = {"boxes": AnnotatedImages, "masks": MaskedImages, "classes": Images}[kind_of_images(protocol)]
    command = Command(f"evaluate {name}", described(type(protocol)))
    groups = (RunFolder, images, Evaluating, Network, BadImages, Computing, protocol)
    run, images, options, network, bad, computing, protocol = read(command, words, *groups)
    from vantage.composition.assignments import assigned
    from vantage.evaluate import evaluate as judge
    from vantage.frozen.encoder import load

    protocol = assigned(protocol, options.set, name=name)
    load(run.folder, network.network)  # a mistake in the run is reported before the images are looked at
    out = file_or_kept(options.out, run.folder)
    classes = getattr(images, "classes", "")
    sources = TaskImages(bad, computing.num_workers, console).of(protocol, images.data, options.test, classes)
    judging = {"baselines": options.baselines, "network": network.network, "work": computing.work(console), "out": out}
    show_result(judge(run.folder, protocol, *sources, **judging), console, run.folder, out)
    return 0


def show_result(
    result: "Result", console: Console, run: Path, out: Path | None = None, test_images: str = "test images"
) -> None:
    """By which protocol a run was judged, on which images, what came out, and in which file it is kept."""
    from vantage.evaluate.result import path_of

    details = next(iter(result.outcomes.values())).details
    if "steps" in details and "training images left out" in details:
        left_out = details["training images left out"]
        console.note(f"{details['steps']:,} steps; {left_out} training images have nothing to find")
    console.note(f"{result.protocol} version {result.version}; {test_images}: {result.test_split}")
    for line in result.lines():
        console.result(line)
    console.note(f"kept in {path_of(result, run, out)}")
    if isinstance(each := details.get("IoU"), dict):
        rows = [(name, "none" if value is None else f"{value:.1f} %") for name, value in each.items()]
        console.notes("IoU of each class", rows)


def _list_protocols(console: Console) -> None:
    """Every protocol in a line or two."""
    from vantage.cli.evaluate.transfer import transfer

    console.result(paragraphs(evaluate.__doc__) + "\n")
    known = protocols()
    about = {name: _in_short(kind) for name, kind in (*known.items(), ("transfer", transfer))}
    about |= {name: f"Short for {kind.name}." for name, kind in known.items() if kind.name != name}  # pyright: ignore
    for name, sentence in about.items():
        console.result(
            textwrap.fill(f"{name:<19}{sentence}", columns(), subsequent_indent=" " * 19, break_on_hyphens=False)
        )
    console.result("\nvantage evaluate PROTOCOL --help shows the options of one. MODULE:NAME is one of your own.")


def _in_short(kind: object) -> str:
    """What a protocol is, in a sentence without its sources."""
    words = re.sub(r" \([^()]*arXiv[^()]*\)", "", " ".join(described(kind).split("\n\n")[0].split()))
    sentence = re.split(r"(?<=[.;]) ", words)[0]
    return sentence.rstrip(".;") + "."
