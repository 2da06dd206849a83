"""Analyze runs, and save the table and the picture."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from vantage.composition.field_types import expect
from vantage.data.sources.source import Source, refuse_path
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks, trained_networks
from vantage.frozen.outside import home_of
from vantage.machine.usual_torch import usual_torch
from vantage.storage.figures import picture
from vantage.storage.files import write_result
from vantage.storage.provenance import versions
from vantage.storage.tables import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SavedAnalysis", "Analysis", "AnalysisResult", "ToyAnalysis", "analyse", "experiment"]


@runtime_checkable
class AnalysisResult(Protocol):
    """The results of an analysis."""

    def lines(self) -> list[str]:
        """The table as text."""
        ...

    def table(self) -> list[Row]:
        """Rows of plain values, all with the same columns."""
        ...

    def figure(self) -> "Figure":
        """The picture."""
        ...


@runtime_checkable
class Analysis(Protocol):
    """A frozen analysis of trained runs; its fields are all of its settings. An analysis that needs only features, not
    the memory of a run, sets `features_suffice = True`; it then accepts weights from elsewhere too."""

    name: ClassVar[str]

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> AnalysisResult:
        """Analyze the runs, and the images through them."""
        ...


@runtime_checkable
class ToyAnalysis(Protocol):
    """A frozen experiment with a known answer; it needs neither runs nor images."""

    name: ClassVar[str]

    def __call__(self) -> AnalysisResult:
        """Run the experiment."""
        ...


@dataclass(frozen=True)
class SavedAnalysis:
    """The result of an analysis, and the files that hold it."""

    result: AnalysisResult
    """The table and the picture."""

    table_file: Path
    """The table as JSON, with all settings."""

    picture_file: Path
    """The picture as PNG."""


@usual_torch()
def analyse(
    analysis: Analysis,
    run_folders: Sequence[Path | str],
    source: Source,
    *,
    work: Work | None = None,
    out: Path | str | None = None,
) -> SavedAnalysis:
    """Analyze the newest checkpoints of runs, and write NAME.json and NAME.png to the folder `out`; if omitted, to
    `analyses` in the folder of the first run. Running the same analysis again replaces its files.

    Raises `UserError` if no run is named, a run has no usable checkpoint or nothing to analyze, or the files cannot be
    written; `UnreadableImage` for an image that cannot be decoded.
    """
    _check_analysis(analysis, Analysis, "Similarity()")
    expect(run_folders, list | tuple, "the list of runs", "folders, such as ['runs/first']")
    refuse_path(source)
    if not run_folders:
        raise UserError("an analysis needs at least one run: name its folder")
    runs = _with_unique_names([trained_networks(Path(folder)) for folder in run_folders])
    without_folder = [one.name for one in runs if one.folder is None]
    if without_folder and not getattr(analysis, "features_suffice", False):
        raise UserError(
            f"{analysis.name} needs the views, heads and memory of a run, which {without_folder[0]} lacks: name the"
            " folders of runs"
        )
    result = analysis(runs, source, work or Work())
    record = {
        "analysis": analysis.name,
        "settings": asdict(analysis),  # pyright: ignore[reportArgumentType]
        "runs": [{"name": one.name, "folder": str(one.folder), "step": one.step} for one in runs],
        "images": source.fingerprint(),
        "versions": versions(),
    }
    return _write(result, record, Path(out or home_of(Path(run_folders[0])) / "analyses"))


@usual_torch()
def experiment(toy: ToyAnalysis, out: Path | str) -> SavedAnalysis:
    """Run an experiment, and write NAME.json and NAME.png to the folder `out`, replacing older ones.

    Raises `UserError` if the files cannot be written.
    """
    _check_analysis(toy, ToyAnalysis, "OptimalToy()")
    result = toy()
    settings = asdict(toy)  # pyright: ignore[reportArgumentType]
    return _write(result, {"analysis": toy.name, "settings": settings, "versions": versions()}, Path(out))


def _check_analysis(analysis: Any, kind: type, example: str) -> None:
    """Raises `UserError` for what is no analysis; one of a user's own must be a dataclass with a name."""
    if isinstance(analysis, type) or not callable(analysis):
        expect(analysis, (), "the analysis", f"a value, such as vantage.studies.analyse.{example}")
    if not isinstance(analysis, kind) or not is_dataclass(analysis):
        what = "is not a dataclass" if isinstance(analysis, kind) else "has no name"
        raise UserError(f"{type(analysis).__name__} {what}, so its results cannot be stored: see {kind.__qualname__}")


def _with_unique_names(runs: list[TrainedNetworks]) -> list[TrainedNetworks]:
    """The runs; those whose folders share a name are named by their whole paths."""
    count = Counter(one.name for one in runs)
    return [one if count[one.name] == 1 else replace(one, name=str(one.folder)) for one in runs]


def _write(result: AnalysisResult, record: dict[str, Any], folder: Path) -> SavedAnalysis:
    expect(result, AnalysisResult, f"the result of {record['analysis']}", "one with lines(), table() and figure()")
    record = {**record, "rows": [{name: _plain(value) for name, value in row.items()} for row in result.table()]}
    table_file, picture_file = folder / f"{record['analysis']}.json", folder / f"{record['analysis']}.png"
    image = picture(result.figure(), "png")
    write_result(table_file, json.dumps(record, indent=1, allow_nan=False), "the table")
    write_result(picture_file, image, "the picture")
    return SavedAnalysis(result, table_file, picture_file)


def _plain(value: Any) -> Any:
    """A number of numpy or torch as Python's own; what is no finite number as None, which JSON can hold."""
    value = value.item() if hasattr(value, "item") else value
    return None if isinstance(value, float) and not math.isfinite(value) else value
