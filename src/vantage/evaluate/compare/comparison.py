"""Several runs by several protocols in one table; runs that differ in their seed only are one row."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from vantage.composition.changes import Change, changes
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.compare.contenders import Contender, contenders
from vantage.evaluate.compare.trials import Trials, title
from vantage.evaluate.result import Outcome
from vantage.evaluate.task import EvaluationProtocol, Task, task_of
from vantage.measures.significance import FEWEST, Difference, difference, holm

__all__ = ["LEVEL", "Cell", "Column", "Comparison", "Row", "compare", "compare_by"]

LEVEL = 0.05
"""Probability below which a difference is called one, after Holm's correction."""


@dataclass(frozen=True)
class Cell:
    """What one protocol measured of one row."""

    values: tuple[float, ...]
    """A number for each run; of several trials their mean."""
    trials: tuple[tuple[float, ...], ...] = ()
    """The numbers of each run's trials, where there are several."""

    @property
    def mean(self) -> float:
        """Their mean."""
        return mean(self.values)

    @property
    def deviation(self) -> float | None:
        """Their standard deviation (of a sample); of one run that of its trials, none for one number."""
        return stdev(self._spread) if self._spread else None

    @property
    def over(self) -> str:
        """What the deviation is over: seeds, trials of one run, or nothing."""
        return "" if not self._spread else "seeds" if len(self.values) > 1 else "trials"

    @property
    def _spread(self) -> tuple[float, ...]:
        numbers = self.values if len(self.values) > 1 else (*self.trials, ())[0]
        return numbers if len(numbers) > 1 else ()


@dataclass(frozen=True)
class Row:
    """Runs that differ in their seed only, or a baseline of them."""

    name: str
    """What is judged."""
    seeds: tuple[int, ...]
    """Seeds of the runs."""
    trained: bool
    """Whether it was trained; baselines are not compared."""
    cells: tuple[Cell | None, ...]
    """One for each column; none where the protocol cannot judge it, such as detectors raw pixels."""

    def cell(self, number: int) -> Cell:
        """One that is there."""
        found = self.cells[number]
        assert found is not None, f"{self.name} was not judged"
        return found


@dataclass(frozen=True)
class Column:
    """One measure of one protocol."""

    protocol: str
    """Its name."""
    version: int
    """Its version."""
    measure: str
    """What is measured, in percent unless the name tells another unit."""
    differences: tuple[tuple[str, str, Difference, float], ...]
    """The best trained row, another one, how they differ, and p after Holm's correction; for those of three seeds or
    more."""
    best: str | None
    """The row that is better than every other trained one beyond the spread; none where any comparison is open."""
    changes: tuple[Change, ...] = ()
    """Settings of the protocol that are not as they are by default."""
    trials: int = 1
    """How many times each run was judged."""
    pixels: str = ""
    """Why raw pixels are not judged; nothing where they are."""

    @property
    def name(self) -> str:
        """The protocol, with what tells it from the same protocol by default."""
        return title(self.protocol, self.changes)


@dataclass(frozen=True)
class Comparison:
    """A table, and what may be said of it."""

    columns: tuple[Column, ...]
    """Protocols, and of each the measures that are shown."""
    rows: tuple[Row, ...]
    """Runs grouped by all but their seed, then the baselines."""
    test: str
    """Where the test images come from."""


def compare(
    folders: Sequence[Path],
    protocols: Sequence[EvaluationProtocol],
    train: Source,
    test: Source | None = None,
    work: Work | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Judge runs by protocols, all on the same images: `compare_by` with a task for each.

    Raises `UserError` as `vantage.evaluate.evaluate` does, and as `compare_by`.
    """
    return compare_by(folders, [task_of(protocol, train, test) for protocol in protocols], work, report)


def compare_by(
    folders: Sequence[Path],
    tasks: Sequence[Task],
    work: Work | None = None,
    report: Callable[[str], None] = lambda line: None,
    network: int | None = None,
) -> Comparison:
    """Judge the newest checkpoints of all runs by all tasks, each once: what RUN/evaluations already holds of this very
    checkpoint, these images, settings and library versions is read, so a comparison that broke off goes on.

    Raw pixels and a random encoder of each architecture, from the seeds of its runs, are rows too; where a protocol
    cannot judge raw pixels, their cell is empty. `report` hears what is done; `network` counts which of the trained
    networks is judged, of runs that have one per view. Raises `UserError` for runs named twice, for runs that a task
    is known to refuse, and what protocols raise.
    """
    work = work or Work()
    _check(folders, tasks)
    compared = contenders(folders, network)
    for task in tasks:
        _check_served(task, compared)
    by_task = [(task, [one for one in compared if one.network or not task.pixels]) for task in tasks]
    count = sum(task.trials * sum(len(one.members) for one in some) for task, some in by_task)
    trials = Trials(work, report, count)
    cells: dict[str, list[Cell | None]] = {one.name: [] for one in compared}
    shown: list[tuple[Task, str]] = []
    for task, some in by_task:
        found, measures = {}, ()
        for one in some:
            for member in one.members:
                found.setdefault(one.name, []).append(trials(task, one, member))
                measures = measures or task.shown(found[one.name][0][0].measures)
        for measure in measures:
            shown.append((task, measure))
            for name, own in cells.items():
                own.append(_cell(found[name], measure) if name in found else None)
    rows = tuple(
        Row(one.name, tuple(member.own.run.seed for member in one.members), one.trained, tuple(cells[one.name]))
        for one in compared
    )
    columns = tuple(_column(number, task, measure, rows) for number, (task, measure) in enumerate(shown))
    return Comparison(columns, rows, _test_splits(tasks))


def _check(folders: Sequence[Path], tasks: Sequence[Task]) -> None:
    """Raises `UserError` for nothing to compare, or something named twice."""
    places = [folder.resolve() for folder in folders]
    if not folders or not tasks:
        raise UserError(f"{len(folders)} runs by {len(tasks)} protocols: give at least one of each")
    if len(set(places)) < len(places):
        raise UserError("a run is named twice: name each folder once")
    for number, one in enumerate(tasks):
        for other in tasks[:number]:
            same = one.protocol == other.protocol and one.train.fingerprint() == other.train.fingerprint()
            if same and one.test.fingerprint() == other.test.fingerprint():
                name = one.protocol.name
                raise UserError(f"{name} is named twice with the same settings: leave one of them out")


def _check_served(task: Task, compared: Sequence[Contender]) -> None:
    """Raises `UserError`, with the run, where a task is known to refuse one."""
    for member in (member for one in compared if one.trained for member in one.members):
        try:
            task.check(member.own)
        except UserError as problem:
            raise UserError(f"{member.folder} by {task.protocol.name}: {problem}") from problem


def _cell(runs: Sequence[tuple[Outcome, ...]], measure: str) -> Cell:
    trials = tuple(tuple(outcome.measures[measure] for outcome in run) for run in runs)
    return Cell(tuple(mean(run) for run in trials), trials if len(trials[0]) > 1 else ())


def _test_splits(tasks: Sequence[Task]) -> str:
    """Where test images come from: once where it is the same for all."""
    if len({task.test_split for task in tasks}) == 1:
        return tasks[0].test_split
    return "; ".join(dict.fromkeys(f"{task.protocol.name}: {task.test_split}" for task in tasks))


def _column(number: int, task: Task, measure: str, rows: Sequence[Row]) -> Column:
    """What can be said of the trained rows: the best against each other one."""
    trained = sorted((row for row in rows if row.trained), key=lambda row: -row.cell(number).mean)
    top, found = trained[0], []
    for other in trained[1:]:
        paired = sorted(top.seeds) == sorted(other.seeds)
        values = [
            [value for _, value in sorted(zip(row.seeds, row.cell(number).values, strict=True))] for row in (top, other)
        ]
        if len(top.seeds) >= FEWEST and (gap := difference(values[0], values[1], paired)) is not None:
            found.append((top.name, other.name, gap))
    corrected = holm([gap.p for _, _, gap in found])
    told = tuple((*each, p) for each, p in zip(found, corrected, strict=True))
    sure = len(found) == len(trained) - 1 > 0 and all(p < LEVEL for p in corrected)
    best = top.name if sure else None
    protocol = task.protocol
    settings = changes(protocol)
    return Column(protocol.name, protocol.version, measure, told, best, settings, task.trials, task.pixels)
