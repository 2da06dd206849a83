"""Analyse runs, and keep the table and the picture."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.outside import home_of
from vantage.storage.figures import picture
from vantage.storage.files import write_result
from vantage.storage.provenance import versions
from vantage.storage.tables import Row
from vantage.studies.analyse.networks import TrainedNetworks, trained_networks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Analyzed", "Analysis", "Findings", "Toy", "analyse", "experiment"]


@runtime_checkable
class Findings(Protocol):
    """The results of an analysis."""

    def lines(self) -> list[str]:
        """The table for people."""
        ...

    def table(self) -> list[Row]:
        """Rows of plain values, all with the same columns."""
        ...

    def figure(self) -> "Figure":
        """The picture."""
        ...


@runtime_checkable
class Analysis(Protocol):
    """A frozen way to look at trained runs. Its fields are all of its settings. One that looks at features only, not at
    what a run remembers, says so by `features_suffice = True`, and takes weights from elsewhere too."""

    name: ClassVar[str]

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> Findings:
        """Analyze the runs, and the images through them."""
        ...


@runtime_checkable
class Toy(Protocol):
    """A frozen experiment whose truth is known; it needs neither runs nor images."""

    name: ClassVar[str]

    def __call__(self) -> Findings:
        """Run the experiment."""
        ...


@dataclass(frozen=True)
class Analyzed:
    """The findings, and the files that hold them."""

    findings: Findings
    """Table and picture."""

    table_file: Path
    """The table as JSON, with all settings."""

    picture_file: Path
    """The picture as PNG."""


def analyse(
    analysis: Analysis,
    run_folders: Sequence[Path],
    source: Source,
    *,
    work: Work | None = None,
    out: Path | None = None,
) -> Analyzed:
    """Analyze the newest checkpoints of runs, and write NAME.json and NAME.png: to the folder `out`, or to `analyses`
    in the first run's. Running the same analysis again replaces its files.

    Raises `UserError` if no run is named, a run has no usable checkpoint or nothing to analyze, or the files cannot be
    written; `UnreadableImage` for an image that cannot be decoded.
    """
    if not run_folders:
        raise UserError("an analysis needs at least one run: name its folder")
    runs = _named_apart([trained_networks(Path(folder)) for folder in run_folders])
    outside = [one.name for one in runs if one.folder is None]
    if outside and not getattr(analysis, "features_suffice", False):
        raise UserError(
            f"{analysis.name} looks at what a run remembers, and {outside[0]} comes without: name the folders of runs"
        )
    findings = analysis(runs, source, work or Work())
    record = {
        "analysis": analysis.name,
        "settings": asdict(analysis),  # pyright: ignore[reportArgumentType]
        "runs": [{"name": one.name, "folder": str(one.folder), "step": one.step} for one in runs],
        "images": source.fingerprint(),
        "versions": versions(),
        "rows": findings.table(),
    }
    return _write(findings, record, out or home_of(Path(run_folders[0])) / "analyses")


def experiment(toy: Toy, out: Path) -> Analyzed:
    """Run an experiment, and write NAME.json and NAME.png to the folder `out`, replacing older ones.

    Raises `UserError` if the files cannot be written.
    """
    findings = toy()
    settings = asdict(toy)  # pyright: ignore[reportArgumentType]
    return _write(
        findings, {"analysis": toy.name, "settings": settings, "versions": versions(), "rows": findings.table()}, out
    )


def _named_apart(runs: list[TrainedNetworks]) -> list[TrainedNetworks]:
    """Runs whose folders share a name are named by their whole paths."""
    count = Counter(one.name for one in runs)
    return [one if count[one.name] == 1 else replace(one, name=str(one.folder)) for one in runs]


def _write(findings: Findings, record: dict[str, Any], folder: Path) -> Analyzed:
    table_file, picture_file = folder / f"{record['analysis']}.json", folder / f"{record['analysis']}.png"
    image = picture(findings.figure(), "png")
    write_result(table_file, json.dumps(record, indent=1, allow_nan=False), "the table")
    write_result(picture_file, image, "the picture")
    return Analyzed(findings, table_file, picture_file)
