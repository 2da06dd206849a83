"""Several runs by several protocols in one table; runs that differ only in their seed share a row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from vantage.composition.changes import SettingChange, changes
from vantage.composition.field_types import expect
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.compare.contenders import Contender, contenders
from vantage.evaluate.compare.trials import Trials, title
from vantage.evaluate.result import Outcome
from vantage.evaluate.task import EvaluationProtocol, Task, task_of
from vantage.machine.usual_torch import usual_torch
from vantage.measures.significance import FEWEST_TESTED, Difference, difference, holm
from vantage.storage.tables import Mean

__all__ = ["LEVEL", "ComparisonCell", "Column", "Comparison", "ComparisonRow", "compare", "compare_by"]

LEVEL = 0.05
"""Significance level: a difference counts if its p, after Holm's correction, is below this."""


@dataclass(frozen=True)
class ComparisonCell:
    """One measure of one row."""

    values: tuple[float, ...]
    """One number for each run: the mean of its trials, if there are several."""
    trials: tuple[tuple[float, ...], ...] = ()
    """The numbers of each run's trials, if there are several."""

    @property
    def mean(self) -> float:
        """Mean over the runs."""
        return mean(self.values)

    @property
    def deviation(self) -> float | None:
        """Sample standard deviation over the runs, or over the trials of a single run; None for a single number."""
        return Mean.of(self._repetitions).deviation

    @property
    def over(self) -> str:
        """What the deviation is over: "seeds", "trials", or nothing ("")."""
        return "" if len(self._repetitions) < 2 else "seeds" if len(self.values) > 1 else "trials"

    @property
    def _repetitions(self) -> tuple[float, ...]:
        return self.trials[0] if self.trials and len(self.values) == 1 else self.values


@dataclass(frozen=True)
class ComparisonRow:
    """Runs that differ only in their seed, or a baseline of them."""

    name: str
    """What is evaluated."""
    seeds: tuple[int, ...]
    """Seeds of the runs."""
    trained: bool
    """Whether it was trained; differences of baselines are not tested."""
    cells: tuple[ComparisonCell | None, ...]
    """One for each column; None if the protocol cannot evaluate the row (detection cannot evaluate raw pixels)."""

    def cell(self, number: int) -> ComparisonCell:
        """The cell of a column in which the row was evaluated."""
        cell = self.cells[number]
        assert cell is not None, f"{self.name} was not evaluated"
        return cell


@dataclass(frozen=True)
class Column:
    """One measure of one protocol."""

    protocol: str
    """Its name."""
    version: int
    """Its version."""
    measure: str
    """What is measured, in percent unless the name gives another unit."""
    differences: tuple[tuple[str, str, Difference, float], ...]
    """For each pair that was tested: the best trained row, another one, their difference, and p after Holm's
    correction. A test needs three seeds or more."""
    best: str | None
    """The row that is better than every other trained one beyond the spread; None if any difference is undecided."""
    changes: tuple[SettingChange, ...] = ()
    """Settings of the protocol that differ from the default."""
    trials: int = 1
    """How many times each run was evaluated."""
    pixels: str = ""
    """Why raw pixels are not evaluated; empty if they are."""

    @property
    def name(self) -> str:
        """The protocol, with its settings that differ from the default."""
        return title(self.protocol, self.changes)


@dataclass(frozen=True)
class Comparison:
    """A table of measures, and which differences are significant."""

    columns: tuple[Column, ...]
    """One for each measure shown of each protocol."""
    rows: tuple[ComparisonRow, ...]
    """Runs grouped by everything but their seed, then the baselines."""
    test: str
    """Where the test images come from."""


def compare(
    folders: Sequence[Path | str],
    protocols: Sequence[EvaluationProtocol],
    train: Source,
    test: Source | None = None,
    work: Work | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Evaluate runs by protocols, all on the same images: `compare_by` with a task for each.

    Raises `UserError` as `vantage.evaluate.evaluate` does, and as `compare_by`.
    """
    expect(folders, list | tuple, "the list of runs", "folders, such as ['runs/first']")
    expect(protocols, list | tuple, "the list of protocols", "values, such as [vantage.evaluate.KNN()]")
    return compare_by(folders, [task_of(protocol, train, test) for protocol in protocols], work, report)


@usual_torch()
def compare_by(
    folders: Sequence[Path | str],
    tasks: Sequence[Task],
    work: Work | None = None,
    report: Callable[[str], None] = lambda line: None,
    network: int | None = None,
) -> Comparison:
    """Evaluate the newest checkpoints of all runs by all tasks, each once: results that RUN/evaluations already holds
    for the same checkpoint, images, settings and library versions are read, so an interrupted comparison can be
    resumed.

    Raw pixels and random encoders of each architecture, with the seeds of its runs, are rows too; if a protocol cannot
    evaluate raw pixels, their cell is empty. `report` is called with a line before each evaluation; `network` is the
    number of the network to evaluate, for runs that trained several. Raises `UserError` for runs named twice and for
    runs that a task is known to refuse, and whatever protocols raise.
    """
    work, paths = work or Work(), [Path(folder) for folder in folders]
    _check(paths, tasks)
    entries = contenders(paths, network)
    for task in tasks:
        _check_accepted(task, entries)
    count = sum(task.trials * len(one.members) for task in tasks for one in _contenders_for(task, entries))
    trials = Trials(work, report, count)
    cells: dict[str, list[ComparisonCell | None]] = {one.name: [] for one in entries}
    heads: list[tuple[Task, str]] = []
    for task in tasks:
        outcomes, measures = _outcomes(task, entries, trials)
        for measure in measures:
            heads.append((task, measure))
            for name, row in cells.items():
                row.append(_cell(outcomes[name], measure) if name in outcomes else None)
    rows = tuple(
        ComparisonRow(
            one.name, tuple(member.run_encoder.run.seed for member in one.members), one.trained, tuple(cells[one.name])
        )
        for one in entries
    )
    columns = tuple(_column(number, task, measure, rows) for number, (task, measure) in enumerate(heads))
    return Comparison(columns, rows, _test_splits(tasks))


def _contenders_for(task: Task, rows: Sequence[Contender]) -> list[Contender]:
    """Those that a task can judge: all, or all but raw pixels."""
    return [one for one in rows if one.network or not task.pixels]


def _outcomes(
    task: Task, rows: Sequence[Contender], trials: Trials
) -> tuple[dict[str, list[tuple[Outcome, ...]]], tuple[str, ...]]:
    """The outcomes of each run's trials, by name of the row, and the measures to show. A measure that does not exist is
    refused after the first run."""
    outcomes: dict[str, list[tuple[Outcome, ...]]] = {}
    measures: tuple[str, ...] = ()
    for one in _contenders_for(task, rows):
        for member in one.members:
            outcomes.setdefault(one.name, []).append(trials(task, one, member))
            measures = measures or task.select_measures(outcomes[one.name][0][0].measures)
    return outcomes, measures


def _check(folders: Sequence[Path], tasks: Sequence[Task]) -> None:
    """Raises `UserError` if there is nothing to compare, or something is named twice."""
    paths = [folder.resolve() for folder in folders]
    if not folders or not tasks:
        raise UserError(f"{len(folders)} runs by {len(tasks)} protocols: give at least one of each")
    if len(set(paths)) < len(paths):
        raise UserError("a run is named twice: name each folder once")
    for number, one in enumerate(tasks):
        for other in tasks[:number]:
            same = one.protocol == other.protocol and one.train.fingerprint() == other.train.fingerprint()
            if same and one.test.fingerprint() == other.test.fingerprint():
                name = one.protocol.name
                raise UserError(f"{name} is named twice with the same settings: leave one of them out")


def _check_accepted(task: Task, rows: Sequence[Contender]) -> None:
    """Raises `UserError`, with the run's folder, if a task is known to refuse a run."""
    for member in (member for one in rows if one.trained for member in one.members):
        try:
            task.check(member.run_encoder)
        except UserError as problem:
            raise UserError(f"{member.folder} by {task.protocol.name}: {problem}") from problem


def _cell(runs: Sequence[tuple[Outcome, ...]], measure: str) -> ComparisonCell:
    trials = tuple(tuple(outcome.measures[measure] for outcome in run) for run in runs)
    return ComparisonCell(tuple(mean(run) for run in trials), trials if len(trials[0]) > 1 else ())


def _test_splits(tasks: Sequence[Task]) -> str:
    """Where the test images come from; stated once if it is the same for all tasks."""
    if len({task.test_split for task in tasks}) == 1:
        return tasks[0].test_split
    return "; ".join(dict.fromkeys(f"{task.protocol.name}: {task.test_split}" for task in tasks))


def _column(number: int, task: Task, measure: str, rows: Sequence[ComparisonRow]) -> Column:
    """A column, with the best trained row tested against every other one."""
    trained_rows = sorted((row for row in rows if row.trained), key=lambda row: -row.cell(number).mean)
    top, gaps = trained_rows[0], []
    for other in trained_rows[1:]:
        is_paired = sorted(top.seeds) == sorted(other.seeds)
        values = [
            [value for _, value in sorted(zip(row.seeds, row.cell(number).values, strict=True))] for row in (top, other)
        ]
        if len(top.seeds) >= FEWEST_TESTED and (gap := difference(values[0], values[1], is_paired)) is not None:
            gaps.append((top.name, other.name, gap))
    p_values = holm([gap.p for _, _, gap in gaps])
    differences = tuple((*gap, p) for gap, p in zip(gaps, p_values, strict=True))
    significant = len(gaps) == len(trained_rows) - 1 > 0 and all(p < LEVEL for p in p_values)
    best = top.name if significant else None
    protocol = task.protocol
    settings = changes(protocol)
    return Column(protocol.name, protocol.version, measure, differences, best, settings, task.trials, task.pixels)
