"""Tables of papers, reproduced: a frozen value holds the paper's numbers and measures ours beside them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from vantage.composition.codec import encode
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.storage.files import result_file, write_json, write_text
from vantage.storage.provenance import versions
from vantage.storage.results import KeptResults
from vantage.storage.tables import Table, csv_of
from vantage.training.writer import only_writer

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["Entry", "Measured", "DataPath", "Report", "Reproduced", "reproduce"]


@dataclass(frozen=True)
class DataPath:
    """A path that an entry asks for: where one of its sets of images lies."""

    name: str
    """The name of its option, such as `test_digits`."""

    help: str
    """Which images must lie there."""


@dataclass(frozen=True)
class Measured:
    """The numbers of one row of a table with one seed."""

    row: str
    """The row's name."""

    seed: int
    """The seed."""

    measures: Mapping[str, float]
    """Numbers by name."""

    seconds: float
    """Time that they took."""


@dataclass(frozen=True)
class Report:
    """The table of results."""

    title: str
    """The title of the table."""

    columns: tuple[str, ...]
    """Names of the columns, that of the rows' names first."""

    rows: tuple[tuple[str, ...], ...]
    """Cells as they are printed."""

    numbers: tuple[Mapping[str, Any], ...]
    """The same rows as plain values, each with its measures, deviations, and what the paper has."""

    notes: tuple[str, ...]
    """Sentences under the table."""

    def markdown(self) -> str:
        """The table for documents."""
        notes = "\n".join(f"- {note}" for note in self.notes)
        return f"## {self.title}\n\n{Table(self.columns, self.rows).markdown()}\n\n{notes}\n"

    def comma_separated(self) -> str:
        """The plain values for other programs, in CSV."""
        return csv_of(self.numbers)


@runtime_checkable
class Entry(Protocol):
    """A table or a figure of a paper. Its fields are all of its settings."""

    name: ClassVar[str]
    """Its word on the command line, such as infomin-table-4."""

    paths: ClassVar[tuple[DataPath, ...]]
    """The paths of the image sets that it needs."""

    def unsaid(self) -> Mapping[str, Any]:
        """Settings that may change without making earlier results wrong, such as the number of seeds, with a
        constant in place of their value."""
        ...

    def check(self, sources: Mapping[str, Source]) -> None:
        """Raises `UserError` if the images do not fit, before anything long begins."""
        ...

    def __call__(
        self, sources: Mapping[str, Source], results: KeptResults[Measured], work: Work
    ) -> "tuple[Report, Image]":
        """Measure what is not kept yet; return the whole table, and a picture."""
        ...


@dataclass(frozen=True)
class Reproduced:
    """The results, and the files that hold them."""

    report: Report
    """The table."""

    files: tuple[Path, ...]
    """The table as Markdown, CSV and JSON, and the picture."""


def reproduce(entry: Entry, sources: Mapping[str, Source], folder: Path, work: Work | None = None) -> Reproduced:
    """Reproduce an entry, and write NAME.md, .csv, .json and .png to a folder.

    Rows that the folder holds from an earlier call with the same settings and images are not measured again. Raises
    `UserError` if they were measured with others, or if the images do not fit.
    """
    entry.check(sources)
    with only_writer(folder, "reproducing in"):
        return _reproduce(entry, sources, folder, work or Work())


def _reproduce(entry: Entry, sources: Mapping[str, Source], folder: Path, work: Work) -> Reproduced:
    facts = {name: source.fingerprint() for name, source in sources.items()}
    settings = {**encode(entry, "entry"), **entry.unsaid()}
    about = {"entry": entry.name, "settings": settings, "images": facts}
    results = KeptResults(folder / "rows.json", about, "reproduction", _read, asdict)
    report, image = entry(sources, results, work)
    record = {
        "entry": entry.name,
        "title": report.title,
        "settings": encode(entry, "entry"),
        "images": facts,
        "versions": versions(),
        "rows": [dict(row) for row in report.numbers],
        "notes": list(report.notes),
    }
    files = tuple(folder / f"{entry.name}{ending}" for ending in (".md", ".csv", ".json", ".png"))
    write_text(files[0], report.markdown())
    write_text(files[1], report.comma_separated())
    write_json(files[2], record)
    with result_file(files[3], "the picture") as file:
        image.save(file, "PNG", optimize=True)
    return Reproduced(report, files)


def _read(row: dict[str, Any]) -> Measured:
    measures = {name: float(value) for name, value in row["measures"].items()}
    return Measured(row["row"], row["seed"], measures, row["seconds"])
