"""The verb `find`: near-duplicates, outliers, representatives and wrong labels, according to a run's features."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from vantage.cli.printing.console import Console, catalog, overview
from vantage.cli.reading.arguments import Command, Word, read, wants_help
from vantage.cli.reading.options import ComputeOptions, ImageOptions, NetworkOptions, RunOrWeights
from vantage.cli.reading.out_files import check_file
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
    """Where to write results."""

    out: Annotated[str, Word("FILE")]
    """File for the table, ending with .csv or .parquet; an existing one is replaced."""

    picture: Annotated[str, Word("FILE")] = ""
    """File for the contact sheet, ending with .png; if omitted, the name of the table with this ending."""

    def files(self) -> tuple[Path, Path]:
        """The paths of table and picture. Raises `UserError` if they cannot be written."""
        table = check_file(Path(self.out), (".csv", ".parquet"), "a table")
        picture = check_file(Path(self.picture or table.with_suffix(".png")), (".png",), "a picture", "--picture")
        return table, picture


@dataclass(frozen=True)
class _DuplicateOptions:
    """The options of `find duplicates`."""

    test: Annotated[str, Word("PATH")] = ""
    """Test images, named like --data: find those with a near-duplicate in --data (leaks), instead of groups."""

    limit: float = 0.25
    """Largest distance of near-duplicates, relative to the mean distance of each to its ten nearest neighbors."""

    def __post_init__(self) -> None:
        if not self.limit > 0:
            raise UserError(f"--limit {self.limit:g}: give a number above 0, such as 0.25")


@dataclass(frozen=True)
class _RepresentativeOptions:
    """The options of `find representatives`."""

    count: int = 100
    """Number of images to choose."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"--count {self.count}: give at least 1")

    by: Literal["clusters", "k-center"] = "clusters"
    """clusters: images nearest to the centers of k-means clusters; k-center: each image farthest from those before."""


def find(words: list[str], console: Console) -> int:
    """Find near-duplicates, outliers, wrong labels, images to label: vantage find KIND RUN --data PATH.

    Each kind writes a table (CSV or Parquet) and a contact sheet (PNG), and reports its decision rule.
    """
    kinds = {each.__name__.strip("_"): each for each in (_duplicates, _outliers, _representatives, _mistakes)}
    if words and words[0] in kinds:
        return _find(words[0], kinds[words[0]], words[1:], console)
    if wants_help(words):
        console.result(overview("find KIND RUN [--option value …]", find.__doc__) + "\n")
        console.result(catalog(kinds))
        console.result("\nvantage find KIND --help shows the options of one.")
        return 0
    if not words or words[0].startswith("-"):
        names = ", ".join(kinds)
        raise UserError(f"find needs a kind ({names}), such as: vantage find duplicates RUN --data PATH --out FILE")
    if kind := next((word for word in words[1:] if word in kinds), ""):
        raise UserError(f"the kind comes first; did you mean: vantage find {kind} {words[0]} …?")
    raise no_such("kind", words[0], kinds)


def _find(kind: str, search_with: "Callable[..., Search]", words: list[str], console: Console) -> int:
    """Read the options, search, and write the results."""
    settings = {"duplicates": (_DuplicateOptions(),), "representatives": (_RepresentativeOptions(),)}.get(kind, ())
    groups = (RunOrWeights, ImageOptions, *settings, _OutputOptions, NetworkOptions, ComputeOptions)
    command = Command(f"find {kind}", search_with.__doc__ or "")
    run, images, *options, writing, network, computing = read(command, words, *groups)
    table, picture = writing.files()
    from vantage.curation import write_findings
    from vantage.frozen.encoder import load

    encoder, work = load(run.folder, network.network), computing.work(console)
    search = search_with(computing, console, *options)
    findings = search(encoder, computing.open(images.data, console), work)
    write_findings(findings, table, picture)
    console.note(findings.rule)
    console.result(findings.summary)
    console.result(str(table))
    console.result(str(picture))
    return 0


def _duplicates(computing: ComputeOptions, console: Console, options: _DuplicateOptions) -> "Search":
    """Find images that may be the same picture, or test images that also occur in another set.

    Two images are near-duplicates if their distance (1 − cosine of the features) is at most --limit times the mean
    distance of each of them to its ten nearest neighbors, which counts as at least a quarter of its median. Chains of
    near-duplicates form groups, surest first. The table has a row for each image in a group and marks one image per
    group to keep. With --test, it has a row for each test image with a near-duplicate in --data. Recompressed copies
    are found reliably, most mirrored ones too; recolored and cropped copies are often missed: look at the contact
    sheet.
    """
    from vantage.curation import find_duplicates, find_leaks

    if not options.test:
        return lambda encoder, source, work: find_duplicates(encoder, source, work, options.limit)
    computing.check(options.test)

    def leaks(encoder: "FrozenEncoder", source: "Source", work: "Work") -> "Findings":
        return find_leaks(encoder, source, computing.open(options.test, console), work, options.limit)

    return leaks


def _outliers(computing: ComputeOptions, console: Console) -> "Search":
    """Find images that are far from all others.

    The table lists all images by their mean distance (1 − cosine of the features) to their ten nearest neighbors,
    farthest first. Outliers lie above the upper quartile plus three times the interquartile range. Groups of similar
    strangers are not found, because they are each other's neighbors.
    """
    from vantage.curation import find_outliers

    return find_outliers


def _representatives(computing: ComputeOptions, console: Console, options: _RepresentativeOptions) -> "Search":
    """Find representative images to label first.

    With clusters, the images nearest to the centers of --count clusters, largest cluster first. With k-center, the
    image nearest to the mean, then repeatedly the one farthest from all before: rare images and outliers come early.
    """
    from vantage.curation import find_representatives

    return lambda encoder, source, work: find_representatives(encoder, source, options.count, options.by, work)


def _mistakes(computing: ComputeOptions, console: Console) -> "Search":
    """Find labels that the nearest neighbors contradict.

    Each image's 20 nearest neighbors vote on its label. A label is a likely mistake if another class leads by half of
    the votes. The table lists all labeled images by that lead, largest first, with the class that the neighbors
    suggest. The result depends on the features: a run that does not separate the classes finds few mistakes.
    """
    from vantage.curation import find_mistakes

    return find_mistakes
