"""The table of a run on many sets, as Markdown, as comma-separated values, and in words."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from vantage.composition.changes import SettingChange
from vantage.storage.tables import Table, csv_text
from vantage.views.colors.statistics import Statistics

__all__ = ["TransferRow", "TransferTable"]


@dataclass(frozen=True)
class TransferRow:
    """One encoder's result on one set."""

    name: str
    """The set."""

    encoder: str
    """The recipe, "raw pixels" or "random encoder"."""

    measure: str
    """The measure, such as top-1."""

    value: float
    """Its value, in percent."""

    train_images: int
    """Labeled training images used."""

    test_images: int
    """Labeled test images used."""


@dataclass(frozen=True)
class TransferTable:
    """Sets by encoders."""

    protocol: str
    """Name of the protocol."""

    version: int
    """Version of its meaning."""

    settings: Mapping[str, Any]
    """Every setting of the protocol."""

    rows: tuple[TransferRow, ...]
    """Results, set by set."""

    left_out: Mapping[str, str]
    """Sets that were not evaluated, and why."""

    changes: tuple[SettingChange, ...] = ()
    """Settings that differ from the defaults."""

    checkpoint: str = ""
    """Name of the run's checkpoint."""

    device: str = ""
    """Kind of device."""

    libraries: Mapping[str, str] = field(default_factory=dict)
    """Versions of libraries."""

    statistics: Mapping[str, Statistics] = field(default_factory=dict)
    """Sets that were normalized by given statistics, not by their own."""

    def cells(self) -> list[list[str]]:
        """A header, a line for each set, and each encoder's mean over sets, if it has a result on all of them."""
        encoders = list(dict.fromkeys(row.encoder for row in self.rows))
        names = list(dict.fromkeys(row.name for row in self.rows))
        row_of = {(row.name, row.encoder): row for row in self.rows}
        lines = [["set", *encoders, "measure", "training images", "test images"]]
        for name in names:
            rows = [row_of.get((name, encoder)) for encoder in encoders]
            first = next(row for row in rows if row is not None)
            cells = ["" if row is None else f"{row.value:.2f}" for row in rows]
            lines.append([name, *cells, first.measure, str(first.train_images), str(first.test_images)])
        means = []
        for encoder in encoders:
            values = [row_of[name, encoder].value for name in names if (name, encoder) in row_of]
            means.append(f"{sum(values) / len(values):.2f}" if len(values) == len(names) else "")
        return [*lines, ["mean", *means, "", "", ""]] if len(names) > 1 else lines

    def markdown(self) -> str:
        """The table, the protocol with its settings, checkpoint, device and libraries, and the sets left out."""
        head, *lines = map(tuple, self.cells())
        below = [f"{self.protocol} version {self.version}: {json.dumps(dict(self.settings))}; values in percent."]
        if self.changes:
            below.append(f"Not by default: {', '.join(each.sentence for each in self.changes)}.")
        for given in dict.fromkeys(self.statistics.values()):
            names = ", ".join(name for name, statistics in self.statistics.items() if statistics == given)
            below.append(f"Normalized by given mean {given.mean}, standard deviation {given.std}: {names}.")
        versions = ", ".join(f"{name} {version}" for name, version in self.libraries.items())
        facts = {"checkpoint": self.checkpoint, "device": self.device, "libraries": versions}
        if any(facts.values()):
            below.append(f"Made with {'; '.join(f'{name}: {value}' for name, value in facts.items() if value)}.")
        below += [f"Not evaluated: {name} ({why})" for name, why in self.left_out.items()]
        return "\n".join([Table(head, tuple(lines)).markdown(), "", *below]) + "\n"

    def comma_separated(self) -> str:
        """The cells alone, as comma-separated values."""
        head, *lines = self.cells()
        return csv_text(head, lines)
