"""Tables of papers, reproduced: a frozen value holds the paper's numbers and measures ours."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from vantage.composition.codec import encode
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.storage.files import result_file, write_json, write_text
from vantage.storage.provenance import versions
from vantage.storage.results import ResultsFile
from vantage.storage.tables import Table, csv_of
from vantage.training.folder.writer import only_writer

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["PaperTable", "RowMeasures", "DataPath", "Report", "Reproduction", "reproduce"]


@dataclass(frozen=True)
class DataPath:
    """A path that a table needs: the location of one of its image sets."""

    name: str
    """The name of its option, such as `test_digits`."""

    help: str
    """Which images are expected there."""


@dataclass(frozen=True)
class RowMeasures:
    """The numbers of one row of a table with one seed."""

    row: str
    """The row's name."""

    seed: int
    """The seed."""

    measures: Mapping[str, float]
    """Numbers by name."""

    seconds: float
    """Time to measure them."""


@dataclass(frozen=True)
class Report:
    """The table of results."""

    title: str
    """The title of the table."""

    columns: tuple[str, ...]
    """Names of the columns, starting with the column of row names."""

    rows: tuple[tuple[str, ...], ...]
    """The cells as printed."""

    numbers: tuple[Mapping[str, Any], ...]
    """The same rows as plain values: measures, deviations and the paper's values."""

    notes: tuple[str, ...]
    """Sentences below the table."""

    def markdown(self) -> str:
        """The table for documents."""
        notes = "\n".join(f"- {note}" for note in self.notes)
        return f"## {self.title}\n\n{Table(self.columns, self.rows).markdown()}\n\n{notes}\n"

    def csv(self) -> str:
        """The plain values for other programs, in CSV."""
        return csv_of(self.numbers)


@runtime_checkable
class PaperTable(Protocol):
    """A table or a figure of a paper. Its fields are all of its settings."""

    name: ClassVar[str]
    """Its name on the command line, such as infomin-table-4."""

    paths: ClassVar[tuple[DataPath, ...]]
    """The paths of the image sets that it needs."""

    def free_settings(self) -> Mapping[str, Any]:
        """Settings that may change without invalidating earlier results, such as the number of seeds, each with a
        constant in place of its value."""
        ...

    def check(self, sources: Mapping[str, Source]) -> None:
        """Raises `UserError` if the images do not fit, before any long computation starts."""
        ...

    def __call__(
        self, sources: Mapping[str, Source], results: ResultsFile[RowMeasures], work: Work
    ) -> "tuple[Report, Image]":
        """Measure the rows that are not stored yet; returns the whole table and a picture."""
        ...


@dataclass(frozen=True)
class Reproduction:
    """The results, and the files that hold them."""

    report: Report
    """The table."""

    files: tuple[Path, ...]
    """The table as Markdown, CSV and JSON, and the picture."""


def reproduce(table: PaperTable, sources: Mapping[str, Source], folder: Path, work: Work | None = None) -> Reproduction:
    """Reproduce a table, and write NAME.md, .csv, .json and .png to a folder.

    Rows that the folder holds from an earlier call with the same settings and images are not measured again. Raises
    `UserError` if they were measured with other settings or images, or if the images do not fit.
    """
    table.check(sources)
    with only_writer(folder, "reproducing in"):
        return _reproduce(table, sources, folder, work or Work())


def _reproduce(table: PaperTable, sources: Mapping[str, Source], folder: Path, work: Work) -> Reproduction:
    fingerprints = {name: source.fingerprint() for name, source in sources.items()}
    settings = {**encode(table, "entry"), **table.free_settings()}
    identity = {"entry": table.name, "settings": settings, "images": fingerprints}
    results = stored_measures(folder, identity)
    report, image = table(sources, results, work)
    record = {
        "entry": table.name,
        "title": report.title,
        "settings": encode(table, "entry"),
        "images": fingerprints,
        "versions": versions(),
        "rows": [dict(row) for row in report.numbers],
        "notes": list(report.notes),
    }
    files = tuple(folder / f"{table.name}{ending}" for ending in (".md", ".csv", ".json", ".png"))
    write_text(files[0], report.markdown())
    write_text(files[1], report.csv())
    write_json(files[2], record)
    with result_file(files[3], "the picture") as file:
        image.save(file, "PNG", optimize=True)
    return Reproduction(report, files)


def stored_measures(folder: Path, identity: Mapping[str, Any]) -> ResultsFile[RowMeasures]:
    """The rows that a folder holds, by key. `identity` names the table, its settings and its images; raises `UserError`
    if the folder holds rows of another one, or a damaged file."""
    return ResultsFile(folder / "rows.json", identity, "reproduction", _parse_row, asdict)


def _parse_row(row: dict[str, Any]) -> RowMeasures:
    measures = {name: float(value) for name, value in row["measures"].items()}
    return RowMeasures(str(row["row"]), int(row["seed"]), measures, float(row["seconds"]))
