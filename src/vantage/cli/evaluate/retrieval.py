"""`vantage evaluate retrieval`: nearest neighbors as numbers and as a picture."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from vantage.cli.evaluate.results import show_result
from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Word, read
from vantage.cli.reading.options import EvaluatedOptions, ImageOptions, RunOrWeights, WorkOptions
from vantage.cli.reading.out_files import result_file_or_none
from vantage.errors import quantity
from vantage.storage.files import result_file

if TYPE_CHECKING:
    from vantage.data.sources.source import Source

__all__ = ["retrieval"]


@dataclass(frozen=True)
class RetrievalOptions:
    """The options of `evaluate retrieval`."""

    test: Annotated[str, Word("PATH")] = ""
    """Query images, named like --data; if omitted, a fifth of the data, per class if there are labels."""

    k: int = 10
    """Neighbors per image, for the precision and for the picture."""

    out: Annotated[str, Word("FILE")] = ""
    """PNG file for the picture, which shows only the run; an existing one is replaced. If omitted,
    RUN/evaluations/retrieval.png."""

    rows: int = 8
    """Query images in the picture, evenly spaced in the set."""

    side: int = 96
    """Width of an image in the picture, in pixels."""


def retrieval(words: list[str], console: Console) -> int:
    """Find the nearest neighbors of images: a picture of them, and precision at k if there are labels.

    Precision at k is the share of an image's k nearest neighbors, by cosine of the features, that have its class,
    averaged over all query images. It is saved in RUN/evaluations. Without labels, there is only the picture.
    """
    command = Command("evaluate retrieval", retrieval.__doc__ or "")
    groups = (RunOrWeights, ImageOptions, RetrievalOptions, EvaluatedOptions, WorkOptions)
    run, images, options, network, computing = read(command, words, *groups)
    from vantage.evaluate import Retrieval, evaluate
    from vantage.evaluate.protocols.neighbors.picture import retrieval_picture, rows_of
    from vantage.evaluate.protocols.neighbors.retrieval import neighbors
    from vantage.frozen.encoder import load

    protocol, encoder = Retrieval(options.k), load(run.folder, network.network)
    out = result_file_or_none(options.out, run.home, (".png",), "a picture")
    out = out or run.home / "evaluations" / "retrieval.png"
    computing.check(images.data, options.test)
    work, data = computing.work(console), computing.open(images.data, console)
    other = computing.open(options.test, console) if options.test else None
    train, test = _sides(data, other)
    rows = rows_of(test, options.rows)
    nearest = neighbors(encoder, train, test, options.k, work)
    if nearest.right is not None:
        how = {**vars(network), "work": work}
        result = evaluate(run.folder, protocol, data, other, **how)
        show_result(result, console, run.folder, test_images="query images")
        title = f"{result.lines()[0]}, among {len(train):,}"
    else:
        console.note("without labels in both sets there is no precision, and the picture has no frames")
        title = f"{encoder.name}: {quantity(len(test), 'query image')} among {len(train):,}"
    if console.first:
        with result_file(out, "the picture") as file:
            retrieval_picture(nearest, train, test, rows, title, options.side).save(file, "PNG")
    console.result(str(out))
    return 0


def _sides(data: "Source", other: "Source | None") -> "tuple[Source, Source]":
    """The images to search and those to look up: as in the protocol, which needs labels, if both have them."""
    from vantage.data.sources.renumbered import RenumberedSource
    from vantage.data.sources.source import labels_of
    from vantage.data.splits import check_apart, split_to_look, with_labels

    if other is not None:
        check_apart(data, other)
    train, test = (data, RenumberedSource(other, data.classes)) if other is not None else split_to_look(data)
    if all(bool((labels_of(source) >= 0).any()) for source in (train, test)):
        (train, _), (test, _) = with_labels(train), with_labels(test)
    return train, test
