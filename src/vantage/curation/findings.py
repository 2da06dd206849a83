"""What a search found (lines to read, a table to work with, rows of a picture), and the files that hold it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from vantage.curation.sheet import Tile, contact_sheet
from vantage.storage.files import result_file, write_result
from vantage.storage.tables import csv_text

__all__ = ["Findings", "write_findings"]

Column = Sequence[str] | Sequence[int] | Sequence[float] | Sequence[bool]


@dataclass(frozen=True)
class Findings:
    """What a search among images found."""

    summary: str
    """How much was found, in a sentence."""
    rule: str
    """The rule, with its numbers."""
    columns: Mapping[str, Column]
    """The table: columns of equal length by their names."""
    tiles: Sequence[Sequence[Tile]]
    """The first rows of the table, as images."""


def write_findings(findings: Findings, table: Path | str, picture: Path | str) -> None:
    """Write the table as CSV (or as Parquet, if its name ends with .parquet), and the images as PNG.

    Parquet's metadata hold summary and rule under "vantage". Raises `UserError` if a file cannot be written.
    """
    table, picture = Path(table), Path(picture)
    if table.suffix.lower() == ".parquet":
        about = {"vantage": json.dumps({"found": findings.summary, "rule": findings.rule})}
        with result_file(table, "the table") as file:
            pq.write_table(pa.table(dict(findings.columns)).replace_schema_metadata(about), file)
    else:
        rows = zip(*findings.columns.values(), strict=True)
        write_result(table, csv_text(list(findings.columns), rows), "the table")
    with result_file(picture, "the picture") as file:
        contact_sheet(findings.tiles, findings.summary).save(file, "PNG")
