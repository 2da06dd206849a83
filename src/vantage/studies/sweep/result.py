"""The results of a sweep: means over seeds, as a table and as CSV."""

from dataclasses import asdict, dataclass
from typing import Any

from vantage.measures.information import bound
from vantage.storage.tables import Mean, Row, Table, csv_of
from vantage.studies.sweep.rows import RANDOM, RAW, SweepRow

__all__ = ["SweepResult"]


@dataclass(frozen=True)
class SweepResult:
    """The results of a sweep so far."""

    name: str
    """The sweep's name."""

    axis: str
    """What is varied, as an axis label."""

    rows: tuple[SweepRow, ...]
    """A row for each value and seed, with values in the order given."""

    baselines: tuple[SweepRow, ...]
    """Raw pixels, and a random encoder for each seed, for each evaluation view."""

    finished: bool
    """Whether all values and seeds are complete."""

    negatives: int
    """K, the number of negatives in I_NCE."""

    images: int
    """Number of held-out images."""

    @property
    def bound(self) -> float:
        """log(K + 1), in nats."""
        return bound(self.negatives)

    @property
    def protocols(self) -> list[str]:
        """Names of the protocols, starting with the one that is plotted."""
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
        """Accuracy over seeds of the baseline that is evaluated in the same way as a value; None if it was not
        evaluated.

        If all values share one evaluation view, they share their baselines.
        """
        rows = self._baseline_rows(name, label)
        return Mean.of([row.accuracy[protocol] for row in rows]) if rows else None

    def _baseline_rows(self, name: str, label: str) -> list[SweepRow]:
        baselines = [row for row in self.baselines if row.encoder == name]
        return [row for row in baselines if row.label == label] or (baselines if self.one_view else [])

    @property
    def one_view(self) -> bool:
        """Whether all values share one evaluation view."""
        return len({row.label for row in self.baselines}) == 1

    @property
    def _heads(self) -> list[str]:
        return ["I_NCE (nats)", *(f"{protocol} (%)" for protocol in self.protocols)]

    def _means(self) -> list[tuple[str, int, list[Mean | None]]]:
        """For each value, then for each baseline: its name, the number of seeds, and a mean for each head."""
        lines: list[tuple[str, int, list[Mean | None]]] = []
        for label in self.labels:
            accuracies = [self.accuracy(label, protocol) for protocol in self.protocols]
            lines.append((label, len(self.of(label)), [self.i_nce(label), *accuracies]))
        for name in (RAW, RANDOM):
            for label in dict.fromkeys(row.label for row in self.baselines):
                value = name if self.one_view else f"{name}, as {label}"
                means = [self.baseline(name, label, protocol) for protocol in self.protocols]
                lines.append((value, len(self._baseline_rows(name, label)), [None, *means]))
        return lines

    def table(self) -> list[Row]:
        """A row for each value, then one for each baseline: means and deviations over seeds."""
        rows: list[Row] = []
        for value, seeds, means in self._means():
            row: dict[str, str | int | float | None] = {"value": value, "seeds": seeds}
            for head, mean in zip(self._heads, means, strict=True):
                row |= {head: mean.mean if mean else None, f"{head} ±": mean.bar if mean else None}
            rows.append(row)
        return rows

    def summary(self) -> Table:
        """The same rows with mean ± standard deviation in one cell."""
        rows = []
        for value, seeds, means in self._means():
            cells = [mean.words(1 if place else 3) if mean else "–" for place, mean in enumerate(means)]
            rows.append((value, str(seeds), *cells))
        return Table(("value", "seeds", *self._heads), tuple(rows))

    def lines(self) -> list[str]:
        """The table for a terminal, with its caption."""
        return [f"{self.axis}; {self.caption()}", *self.summary().lines()]

    def caption(self) -> str:
        """A sentence about what the numbers mean."""
        return (
            f"mean ± standard deviation over seeds; I_NCE on {self.images:,} held-out images with K ="
            f" {self.negatives:,} negatives is at most log(K + 1) = {self.bound:.2f} nats"
        )

    def markdown(self) -> str:
        """The table in Markdown."""
        return f"{self.axis}\n\n{self.summary().markdown()}\n\n{self.caption()}\n" if self.rows else ""

    def csv(self) -> str:
        """Every row, with all digits."""
        return csv_of([_flat(row) for row in (*self.rows, *self.baselines)])


def _flat(row: SweepRow) -> dict[str, Any]:
    values = asdict(row)
    values.pop("branches")
    accuracy = values.pop("accuracy")
    return {**values, **{f"{name} (%)": value for name, value in accuracy.items()}}
