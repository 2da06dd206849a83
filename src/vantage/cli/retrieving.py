"""`vantage evaluate retrieval`: nearest neighbors as numbers and as a picture."""

from dataclasses import dataclass
from pathlib import Path

from vantage.cli.after import Images
from vantage.cli.arguments import Command, parse
from vantage.cli.console import Console
from vantage.cli.images import opened, work_of
from vantage.cli.results import kept_or_out, tell
from vantage.composition.fields import options

__all__ = ["retrieval"]


@dataclass(frozen=True)
class Options(Images):
    """What `evaluate retrieval` is told."""

    test: str = ""
    """Images to look up, named as --data is; without, a fifth of the data (of each class, where it has labels)."""

    k: int = 10
    """Neighbors of each image: counted, and shown."""

    out: str = ""
    """Picture to write, ending with .png; an older one is replaced. Without, RUN/evaluations/retrieval.png."""

    rows: int = 8
    """Images shown with their neighbors, spread evenly over those looked up."""

    side: int = 96
    """Width of an image in the picture, in pixels."""

    baselines: bool = False
    """Whether raw pixels and a random encoder are judged as well; the picture shows the run's."""


def retrieval(words: list[str], console: Console) -> int:
    """Look images up among others: their nearest neighbors as a picture, and precision at k where there are labels.

    Precision at k is the share of an image's k nearest neighbors, by the cosine of their features, that are of its
    class; the mean over all images looked up. It is kept in RUN/evaluations. Images without labels have a picture only.
    """
    asked = parse(
        Command("vantage evaluate retrieval", retrieval.__doc__ or "", {}), options(Options, ("run",)), words
    ).values
    from vantage.data.sources.source import labels_of
    from vantage.data.splits import Renumbered, with_labels
    from vantage.evaluate import Retrieval, evaluate
    from vantage.evaluate.protocols.neighbors.picture import retrieval_picture, rows_of
    from vantage.evaluate.protocols.neighbors.retrieval import neighbors, queries
    from vantage.frozen.encoder import load
    from vantage.storage.files import result_file

    protocol, run = Retrieval(asked["k"]), Path(asked["run"])
    trained = load(run, asked["network"])
    out = kept_or_out(asked, (".png",), "a picture") or run / "evaluations" / "retrieval.png"
    data, work = opened(asked["data"], asked, console), work_of(asked, console)
    given = opened(asked["test"], asked, console) if asked["test"] else None
    train, test = (data, Renumbered(given, data.classes)) if given is not None else queries(data)
    if all(bool((labels_of(source) >= 0).any()) for source in (train, test)):
        (train, _), (test, _) = with_labels(train), with_labels(test)  # as the protocol has it
    rows = rows_of(test, asked["rows"])
    found = neighbors(trained, train, test, asked["k"], work)
    if found.right is not None:
        result = evaluate(run, protocol, data, given, baselines=asked["baselines"], network=asked["network"], work=work)
        tell(result, console, asked["run"], test_images="images looked up")
        title = f"{result.lines()[0]}, among {len(train):,}"
    else:
        console.note("without labels in both sets there is no precision, and the picture has no frames")
        title = f"{trained.name}: {len(test):,} images looked up among {len(train):,}"
    picture = retrieval_picture(found, train, test, rows, title, asked["side"])
    with result_file(out, "the picture") as file:
        picture.save(file, "PNG")
    console.result(str(out))
    return 0
