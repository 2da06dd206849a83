"""The results of a sweep: means over seeds, as a table and as CSV."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from vantage.facts.results import RANDOM_ENCODER, RAW_PIXELS
from vantage.measures.information import bound
from vantage.storage.tables import Mean, Row, Table, csv_of
from vantage.studies.sweep.paired import PairedDifference
from vantage.studies.sweep.rows import SweepRow

__all__ = ["SweepResult"]

_I_NCE = "I_NCE (nats)"


class _Entry(NamedTuple):
    """What a table says of a value or of a baseline."""

    value: str
    seeds: int
    shared: Mean | None
    means: Mapping[str, Mean | None]
    gaps: Mapping[str, PairedDifference | None]


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
    """Raw pixels for each evaluation view, and a random encoder for each seed, evaluation view and backbone."""

    finished: bool
    """Whether all values and seeds are complete."""

    negatives: int
    """K, the number of negatives in I_NCE; 0 if it was not measured."""

    images: int
    """Number of held-out images; if I_NCE was measured, on how many of them."""

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

    @property
    def measures_information(self) -> bool:
        """Whether I_NCE was measured."""
        return self.negatives > 0

    def difference(self, label: str, protocol: str) -> PairedDifference | None:
        """How the accuracy of a value differs from that of the first value, seed by seed, in points; None for the first
        value itself, and for fewer than three seeds in common."""
        if label == self.labels[0]:
            return None
        own, first = ({row.seed: row.accuracy[protocol] for row in self.of(one)} for one in (label, self.labels[0]))
        return PairedDifference.of(own, first)

    @property
    def has_differences(self) -> bool:
        """Whether any value has enough seeds to be compared with the first."""
        return any(self.difference(label, self.protocols[0]) for label in self.labels)

    def accuracy(self, label: str, protocol: str) -> Mean:
        """Accuracy of a value over seeds, in percent."""
        return Mean.of([row.accuracy[protocol] for row in self.of(label)])

    def baseline(self, name: str, label: str, protocol: str) -> Mean | None:
        """Accuracy over seeds of the baseline that is evaluated in the same way as a value; None if it was not
        evaluated.

        If a baseline is the same for all values, they share it.
        """
        rows = self._baseline_rows(name, label)
        return Mean.of([row.accuracy[protocol] for row in rows]) if rows else None

    def _baseline_rows(self, name: str, label: str) -> list[SweepRow]:
        rows = [row for row in self.baselines if row.encoder == name]
        return rows if self.is_shared(name) else [row for row in rows if row.label == label]

    def is_shared(self, name: str) -> bool:
        """Whether a baseline is the same for all values: they share one evaluation view, and for a random encoder one
        backbone."""
        return len(self._baseline_labels(name)) == 1

    def _baseline_labels(self, name: str) -> list[str]:
        """The values that a baseline was evaluated for, in order."""
        return list(dict.fromkeys(row.label for row in self.baselines if row.encoder == name))

    def _entries(self) -> list[_Entry]:
        """One for each value, then one for each baseline."""
        entries: list[_Entry] = []
        for label in self.labels:
            means = {protocol: self.accuracy(label, protocol) for protocol in self.protocols}
            gaps = {protocol: self.difference(label, protocol) for protocol in self.protocols}
            shared = self.i_nce(label) if self.measures_information else None
            entries.append(_Entry(label, len(self.of(label)), shared, means, gaps))
        for name in (RAW_PIXELS, RANDOM_ENCODER):
            for label in self._baseline_labels(name):
                value = name if self.is_shared(name) else f"{name}, as {label}"
                means = {protocol: self.baseline(name, label, protocol) for protocol in self.protocols}
                entries.append(_Entry(value, len(self._baseline_rows(name, label)), None, means, {}))
        return entries

    def table(self) -> list[Row]:
        """A row for each value, then one for each baseline: means and deviations over seeds, and from three seeds on
        the differences to the first value with their 95 % intervals."""
        rows: list[Row] = []
        for entry in self._entries():
            row: dict[str, str | int | float | None] = {"value": entry.value, "seeds": entry.seeds}
            if self.measures_information:
                row |= _columns(_I_NCE, entry.shared)
            for protocol, mean in entry.means.items():
                row |= _columns(_percent(protocol), mean)
            for protocol in self.protocols if self.has_differences else ():
                row |= _gap_columns(_against(protocol), entry.gaps.get(protocol))
            rows.append(row)
        return rows

    def summary(self) -> Table:
        """The same rows with mean ± standard deviation in one cell, and mean [interval] of a difference."""
        compared = self.protocols if self.has_differences else []
        heads = [_I_NCE] * self.measures_information + [*map(_percent, self.protocols), *map(_against, compared)]
        rows = []
        for entry in self._entries():
            cells = [_words(entry.shared, 3)] * self.measures_information
            cells += [_words(entry.means[protocol], 1) for protocol in self.protocols]
            cells += [_words(entry.gaps.get(protocol), 1) for protocol in compared]
            rows.append((entry.value, str(entry.seeds), *cells))
        return Table(("value", "seeds", *heads), tuple(rows))

    def lines(self) -> list[str]:
        """The table for a terminal, with its caption."""
        return [f"{self.axis}; {self.caption()}", *self.summary().lines()]

    def caption(self) -> str:
        """A sentence about what the numbers mean."""
        parts = ["mean ± standard deviation over seeds"]
        if self.has_differences:
            parts.append("− first: difference to the first value, mean over paired seeds [95 % interval]")
        if self.measures_information:
            parts.append(
                f"I_NCE on {self.images:,} held-out images with K = {self.negatives:,} negatives is at most"
                f" log(K + 1) = {self.bound:.2f} nats"
            )
        return "; ".join(parts)

    def markdown(self) -> str:
        """The table in Markdown."""
        return f"{self.axis}\n\n{self.summary().markdown()}\n\n{self.caption()}\n" if self.rows else ""

    def csv(self) -> str:
        """Every row, with all digits."""
        return csv_of([_flat(row) for row in (*self.rows, *self.baselines)])


def _columns(head: str, mean: Mean | None) -> dict[str, str | int | float | None]:
    return {head: mean.mean if mean else None, f"{head} ±": mean.bar if mean else None}


def _gap_columns(head: str, gap: PairedDifference | None) -> dict[str, str | int | float | None]:
    if gap is None:
        return {head: None, f"{head} low": None, f"{head} high": None}
    return {head: gap.mean, f"{head} low": gap.low, f"{head} high": gap.high}


def _percent(protocol: str) -> str:
    return f"{protocol} (%)"


def _against(protocol: str) -> str:
    return f"{protocol} − first (%)"


def _words(number: Mean | PairedDifference | None, digits: int) -> str:
    return number.words(digits) if number else "–"


def _flat(row: SweepRow) -> dict[str, Any]:
    values = asdict(row)
    values.pop("branches")
    accuracy = values.pop("accuracy")
    return {**values, **{f"{name} (%)": value for name, value in accuracy.items()}}
