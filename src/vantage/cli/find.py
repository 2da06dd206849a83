"""The verb `find`: near-duplicates, outliers, representatives and wrong labels, by the features of a run."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from vantage.cli.arguments import Command, Word, read, wants_help
from vantage.cli.console import Console, catalog, paragraphs
from vantage.cli.files import check_file
from vantage.cli.options import ComputeOptions, ImageOptions, NetworkOptions, RunOrWeights
from vantage.composition.suggest import no_such
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.curation import Findings
    from vantage.data import Source
    from vantage.encoding import Work
    from vantage.frozen.encoder import FrozenEncoder

    Search = Callable[[FrozenEncoder, Source, Work], Findings]

__all__ = ["find"]


@dataclass(frozen=True)
class _OutputOptions:
    """Where results are written."""

    out: Annotated[str, Word("FILE")]
    """File for the table, ending with .csv or .parquet; an existing one is replaced."""

    picture: Annotated[str, Word("FILE")] = ""
    """File for the contact sheet, ending with .png; if omitted, that of the table with this ending."""

    def files(self) -> tuple[Path, Path]:
        """The table and the picture; raises `UserError` where they cannot be written."""
        table = check_file(Path(self.out), (".csv", ".parquet"), "a table")
        picture = check_file(Path(self.picture or table.with_suffix(".png")), (".png",), "a picture", "--picture")
        return table, picture


@dataclass(frozen=True)
class _DuplicateOptions:
    """The options of `find duplicates`."""

    test: Annotated[str, Word("PATH")] = ""
    """Test images, named like --data: finds those with a near-duplicate in --data (leaks), in place of groups."""

    limit: float = 0.25
    """Largest distance of two near-duplicates, in mean distances of either to its ten nearest neighbors."""

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise UserError(f"--limit {self.limit:g}: give a number above 0, such as 0.25")


@dataclass(frozen=True)
class _RepresentativeOptions:
    """The options of `find representatives`."""

    count: int = 100
    """How many images to choose."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"--count {self.count}: give at least 1")

    by: Literal["clusters", "k-center"] = "clusters"
    """clusters: nearest to the centers of k-means clusters; k-center: each the farthest from all before it."""


def find(words: list[str], console: Console) -> int:
    """Find near-duplicates, outliers, wrong labels, images to label: vantage find KIND RUN --data PATH.

    Each kind writes a table (CSV or Parquet) and a contact sheet (PNG), and reports the rule by which it decides.
    """
    kinds = {"duplicates": _duplicates, "outliers": _outliers, "representatives": _representatives}
    kinds["mistakes"] = _mistakes
    if words and words[0] in kinds:
        return kinds[words[0]](words[1:], console)
    if wants_help(words):
        console.result(paragraphs(find.__doc__) + "\n")
        console.result(catalog({name: verb.__doc__ or "" for name, verb in kinds.items()}))
        console.result("\nvantage find KIND --help shows the options of one.")
        return 0
    if not words or words[0].startswith("-"):
        listed = ", ".join(kinds)
        raise UserError(f"find needs a kind ({listed}), such as: vantage find duplicates RUN --data PATH --out FILE")
    if kind := next((word for word in words[1:] if word in kinds), ""):
        raise UserError(f"the kind comes first; did you mean: vantage find {kind} {words[0]} …?")
    raise no_such("kind", words[0], kinds)


def _duplicates(words: list[str], console: Console) -> int:
    """Find images that may be the same picture, or test images that are among others.

    Two images are near-duplicates where their distance (1 − cosine of the features) is at most --limit times the mean
    distance of each of them to its ten nearest neighbors. A group is a chain of near-duplicates, the surest first; the
    table has a row for each image in a group, and marks one of each to keep. With --test, a row for each test image
    that has a near-duplicate in --data. Recompressed copies are found surely; how far mirrored, cropped and recolored
    ones are depends on what the run has learned to ignore: look at the contact sheet.
    """

    def search(options: Any, computing: ComputeOptions) -> "Search":
        from vantage.curation import find_duplicates, find_leaks

        if not options.test:
            return lambda encoder, source, work: find_duplicates(encoder, source, work, options.limit)
        computing.check(options.test)

        def leaks(encoder: "FrozenEncoder", source: "Source", work: "Work") -> "Findings":
            return find_leaks(encoder, source, computing.open(options.test, console), work, options.limit)

        return leaks

    return _search("duplicates", _duplicates.__doc__, _DuplicateOptions(), search, words, console)


def _outliers(words: list[str], console: Console) -> int:
    """Find images that are far from all others.

    The table has all images by their mean distance (1 − cosine of the features) to their ten nearest neighbors, the
    farthest first. Outliers are those above the upper quartile and three times the range between the quartiles.
    """

    def search(options: Any, computing: ComputeOptions) -> "Search":
        from vantage.curation import find_outliers

        return find_outliers

    return _search("outliers", _outliers.__doc__, None, search, words, console)


def _representatives(words: list[str], console: Console) -> int:
    """Find images that stand for all, to label first.

    By clusters, those nearest to the centers of as many clusters, the largest cluster first. By k-center, the one
    nearest to the mean, then always the image farthest from all before: rare images come early, and so do strangers.
    """

    def search(options: Any, computing: ComputeOptions) -> "Search":
        from vantage.curation import find_representatives

        return lambda encoder, source, work: find_representatives(encoder, source, options.count, options.by, work)

    return _search("representatives", _representatives.__doc__, _RepresentativeOptions(), search, words, console)


def _mistakes(words: list[str], console: Console) -> int:
    """Find labels that the nearest neighbors contradict.

    The 20 nearest neighbors of each image vote for their labels. A label counts as a likely mistake where another class
    leads by half of the votes. The table has all labeled images by that lead, largest first, with the class that the
    neighbors suggest. It is as good as the features: a run that does not tell the classes apart finds few mistakes.
    """

    def search(options: Any, computing: ComputeOptions) -> "Search":
        from vantage.curation import find_mistakes

        return find_mistakes

    return _search("mistakes", _mistakes.__doc__, None, search, words, console)


def _search(
    kind: str,
    about: str | None,
    settings: Any,
    search: "Callable[[Any, ComputeOptions], Search]",
    words: list[str],
    console: Console,
) -> int:
    """Read the options, search, and write what comes out."""
    groups = (
        RunOrWeights,
        ImageOptions,
        *([settings] if settings else []),
        _OutputOptions,
        NetworkOptions,
        ComputeOptions,
    )
    run, images, *options, writing, network, computing = read(Command(f"find {kind}", about or ""), words, *groups)
    table, picture = writing.files()
    from vantage.curation import write_findings
    from vantage.frozen.encoder import load

    encoder, work = load(run.folder, network.network), computing.work(console)
    chosen = search(options[0] if options else None, computing)
    findings = chosen(encoder, computing.open(images.data, console), work)
    write_findings(findings, table, picture)
    console.note(findings.rule)
    console.result(findings.summary)
    console.result(str(table))
    console.result(str(picture))
    return 0
