"""What a sweep found: table, CSV, and the pictures of InfoMin's figures."""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from vantage.storage.figures import needs_matplotlib
from vantage.storage.files import write_result
from vantage.storage.tables import Row, aligned
from vantage.studies.sweep.rows import RANDOM, RAW, SweepRow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Mean", "Swept"]


@dataclass(frozen=True)
class Mean:
    """Mean and standard deviation over seeds."""

    mean: float
    """Their mean."""

    deviation: float
    """Their standard deviation; 0 for a single one."""

    seeds: int
    """How many there are."""

    @classmethod
    def of(cls, values: Sequence[float]) -> "Mean":
        """Of one number for each seed."""
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))

    def told(self, digits: int) -> str:
        """Such as 12.3 ± .4; without a deviation for a single seed."""
        spread = f" ± {self.deviation:.{digits}f}" if self.seeds > 1 else ""
        return f"{self.mean:.{digits}f}{spread}"


@dataclass(frozen=True)
class Swept:
    """What a sweep found so far."""

    name: str
    """The sweep's name."""

    axis: str
    """What is varied, in words along an axis."""

    rows: tuple[SweepRow, ...]
    """A row for each value and seed, values in the order given."""

    baselines: tuple[SweepRow, ...]
    """Raw pixels, and random encoders of each seed, of each way in which evaluations see images."""

    finished: bool
    """Whether all values and seeds are there."""

    negatives: int
    """K of I_NCE."""

    images: int
    """Held-out images."""

    @property
    def bound(self) -> float:
        """log(K + 1), in nats."""
        return math.log(self.negatives + 1)

    @property
    def protocols(self) -> list[str]:
        """Names of the protocols, the one that is drawn first."""
        return list(self.rows[0].accuracy) if self.rows else []

    @property
    def labels(self) -> list[str]:
        """The values, in order."""
        return list(dict.fromkeys(row.label for row in self.rows))

    def of(self, label: str) -> list[SweepRow]:
        """The rows of a value, by seed."""
        return [row for row in self.rows if row.label == label]

    def i_nce(self, label: str) -> Mean:
        """I_NCE of a value over seeds, in nats."""
        return Mean.of([row.i_nce for row in self.of(label) if row.i_nce is not None])

    def accuracy(self, label: str, protocol: str) -> Mean:
        """Accuracy of a value over seeds, in percent."""
        return Mean.of([row.accuracy[protocol] for row in self.of(label)])

    def baseline(self, name: str, label: str, protocol: str) -> Mean | None:
        """Accuracy of a baseline that is judged as a value is, over seeds; none where it was not judged.

        Where all values are evaluated in one view, their baselines are the same.
        """
        mine = [row for row in self.baselines if row.encoder == name]
        own = [row for row in mine if row.label == label] or (mine if self.one_view else [])
        return Mean.of([row.accuracy[protocol] for row in own]) if own else None

    @property
    def one_view(self) -> bool:
        """Whether evaluations see images in one way, whatever the value."""
        return len({row.label for row in self.baselines}) == 1

    def table(self) -> list[Row]:
        """A row for each value, then one for each baseline: means and deviations over seeds."""
        found: list[Row] = []
        for label in self.labels:
            row: dict[str, str | int | float | None] = {"value": label, "seeds": len(self.of(label))}
            row |= _columns("I_NCE (nats)", self.i_nce(label))
            for protocol in self.protocols:
                row |= _columns(f"{protocol} (%)", self.accuracy(label, protocol))
            found.append(row)
        for name in (RAW, RANDOM):
            for label in dict.fromkeys(row.label for row in self.baselines):
                told = name if self.one_view else f"{name}, as {label}"
                means = {protocol: self.baseline(name, label, protocol) for protocol in self.protocols}
                seeds = next((mean.seeds for mean in means.values() if mean), 0)
                row = {"value": told, "seeds": seeds, **_columns("I_NCE (nats)", None)}
                for protocol, mean in means.items():
                    row |= _columns(f"{protocol} (%)", mean)
                found.append(row)
        return found

    def told(self) -> list[Row]:
        """The table with mean ± deviation in one cell."""
        heads = ["I_NCE (nats)", *(f"{protocol} (%)" for protocol in self.protocols)]
        rows: list[Row] = []
        for row in self.table():
            cells = {}
            for head, digits in zip(heads, (3, *[1] * len(self.protocols)), strict=True):
                mean, deviation = row[head], row[f"{head} ±"]
                known = isinstance(mean, float) and isinstance(deviation, float)
                cells[head] = Mean(mean, deviation, int(row["seeds"] or 0)).told(digits) if known else "–"  # pyright: ignore
            rows.append({"value": str(row["value"]), "seeds": str(row["seeds"]), **cells})
        return rows

    def lines(self) -> list[str]:
        """The table for people, and what it says."""
        return [f"{self.axis}; {self.caption()}", *aligned(self.told())]

    def caption(self) -> str:
        """What the numbers are."""
        return (
            f"mean ± standard deviation over seeds; I_NCE on {self.images:,} held-out images with K ="
            f" {self.negatives:,} negatives is at most log(K + 1) = {self.bound:.2f} nats"
        )

    def markdown(self) -> str:
        """The table in Markdown."""
        rows = self.told()
        if not rows:
            return ""
        lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return f"{self.axis}\n\n{table}\n\n{self.caption()}\n"

    def csv(self) -> str:
        """Every row, with all digits."""
        text = io.StringIO()
        flat = [_flat(row) for row in (*self.rows, *self.baselines)]
        writer = csv.DictWriter(text, list(flat[0]) if flat else [], lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        return text.getvalue()

    def figure(self) -> "Figure":
        """Accuracy and I_NCE against what is varied, and against each other."""
        from vantage.studies.sweep.drawn import drawn

        return drawn(self)

    def write(self, folder: Path) -> list[Path]:
        """Table as Markdown and CSV, picture as PNG and SVG, each whole or not at all; their paths.

        Raises `UserError` where they cannot be written, or matplotlib is missing.
        """
        needs_matplotlib()
        contents = {".md": self.markdown().encode(), ".csv": self.csv().encode()}
        figure = self.figure()
        for kind in (".png", ".svg"):
            picture = io.BytesIO()
            # Without a date, so that the same rows give the same file.
            figure.savefig(picture, format=kind[1:], metadata={"Date": None} if kind == ".svg" else None)
            contents[kind] = picture.getvalue()
        paths = {kind: folder / f"{self.name}{kind}" for kind in contents}
        for kind, content in contents.items():
            write_result(paths[kind], content, "the result")
        return list(paths.values())


def _columns(head: str, mean: Mean | None) -> dict[str, str | int | float | None]:
    return {head: mean.mean if mean else None, f"{head} ±": mean.deviation if mean else None}


def _flat(row: SweepRow) -> dict[str, Any]:
    told = asdict(row)
    told.pop("branches")
    accuracy = told.pop("accuracy")
    return {**told, **{f"{name} (%)": value for name, value in accuracy.items()}}
