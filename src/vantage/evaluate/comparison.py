"""Several runs by several protocols in one table; runs that differ in their seed only are one row."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean, stdev
from typing import Any

from vantage.data.source import Source
from vantage.embedding import Work
from vantage.errors import UserError
from vantage.evaluate.changed import Changed, changed
from vantage.evaluate.evaluation import Result, keep, parted, result_of
from vantage.evaluate.outcome import EvaluationProtocol, Outcome
from vantage.evaluate.significance import FEWEST, Difference, difference, holm
from vantage.run import Hardware, Monitoring
from vantage.trained import Trained, load, random_encoder, raw_pixels

__all__ = ["LEVEL", "Cell", "Column", "Comparison", "Row", "compare"]

LEVEL = 0.05
"""Probability below which a difference is called one, after Holm's correction."""


@dataclass(frozen=True)
class Cell:
    """What one protocol measured of one row."""

    values: tuple[float, ...]
    """A number for each seed."""

    @property
    def mean(self) -> float:
        """Their mean."""
        return mean(self.values)

    @property
    def deviation(self) -> float | None:
        """Their standard deviation (of a sample); none for one."""
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class Row:
    """Runs that differ in their seed only, or a baseline of them."""

    name: str
    """What is judged."""
    seeds: tuple[int, ...]
    """Seeds of the runs."""
    trained: bool
    """Whether it was trained; baselines are not compared."""
    cells: tuple[Cell, ...]
    """One for each protocol."""


@dataclass(frozen=True)
class Column:
    """One protocol: the measure that it quotes first."""

    protocol: str
    """Its name."""
    version: int
    """Its version."""
    measure: str
    """What is measured, in per cent unless the name tells another unit."""
    differences: tuple[tuple[str, str, Difference, float], ...]
    """The best trained row, another one, how they differ, and p after Holm's correction; for those of three seeds or
    more."""
    best: str | None
    """The row that is better than every other trained one beyond the spread; none where any comparison is open."""
    changed: tuple[Changed, ...] = ()
    """Settings of the protocol that are not as they are by default."""

    @property
    def name(self) -> str:
        """The protocol, with what tells it from the same protocol by default."""
        return _words(self.protocol, self.changed)


@dataclass(frozen=True)
class Comparison:
    """A table, and what may be said of it."""

    columns: tuple[Column, ...]
    """Protocols."""
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
    told: Callable[[str], None] = lambda line: None,
) -> Comparison:
    """Judge the newest checkpoints of all runs by all protocols, each once: what RUN/evaluations already holds of this
    very checkpoint, these images, settings and library versions is read, so a comparison that broke off goes on.

    Raw pixels and a random encoder of each architecture, from the seeds of its runs, are rows too. `told` hears what is
    done. Raises `UserError` for runs named twice, and as `vantage.evaluate.evaluate` does.
    """
    work, places = work or Work(), [folder.resolve() for folder in folders]
    if not folders or not protocols:
        raise UserError(f"{len(folders)} runs by {len(protocols)} protocols: give at least one of each")
    if len(set(places)) < len(places):
        raise UserError("a run is named twice: name each folder once")
    if twice := next((one for number, one in enumerate(protocols) if one in protocols[:number]), None):
        raise UserError(f"{twice.name} is named twice with the same settings: leave one of them out")
    train, test, kind = parted(train, test)
    groups = _grouped([(folder, load(folder)) for folder in folders])
    todo = [(name, members, trained) for name, members, trained in (*groups, *_baselines(groups))]
    measured: dict[str, list[Cell]] = {name: [] for name, _, _ in todo}
    names: list[str] = []
    judge = _Judge(train, test, kind, work, told, len(protocols) * sum(len(members) for _, members, _ in todo))
    for protocol in protocols:
        first = ""
        for name, members, _ in todo:
            outcomes = [judge(protocol, name, *member) for member in members]
            first = next(iter(outcomes[-1].measures))
            measured[name].append(Cell(tuple(outcome.measures[first] for outcome in outcomes)))
        names.append(first)
    rows = tuple(
        Row(name, tuple(encoder.run.seed for _, encoder in members), trained, tuple(measured[name]))
        for name, members, trained in todo
    )
    pairs = enumerate(zip(protocols, names, strict=True))
    columns = tuple(_column(number, protocol, measure, rows) for number, (protocol, measure) in pairs)
    return Comparison(columns, rows, kind)


_Group = tuple[str, list[tuple[Path, Trained]], bool]


def _grouped(runs: Sequence[tuple[Path, Trained]]) -> list[_Group]:
    """Runs that differ in seed, hardware and monitoring at most, at the same checkpoint; a name for each."""
    groups: list[tuple[Any, list[tuple[Path, Trained]]]] = []
    for folder, trained in runs:
        alike = replace(trained.run, seed=0, hardware=Hardware(), monitoring=Monitoring())
        key = (alike, trained.checkpoint.name if trained.checkpoint else "")
        members = next((members for known, members in groups if known == key), None)
        if members is None:
            groups.append((key, [(folder, trained)]))
        elif any(trained.run.seed == other.run.seed for _, other in members):
            raise UserError(f"{folder} is a second run of the same settings and the same seed: name one of them")
        else:
            members.append((folder, trained))
    recipes = [members[0][1].name for _, members in groups]
    named: list[_Group] = []
    for (_, members), recipe in zip(groups, recipes, strict=True):
        alone = recipes.count(recipe) == 1
        named.append((recipe if alone else f"{recipe} ({members[0][0].resolve().name})", members, True))
    return named


def _baselines(groups: Sequence[_Group]) -> list[_Group]:
    """Raw pixels of each view, and random encoders of each architecture, once."""
    found: list[tuple[Any, _Group]] = []
    for name, members, _ in groups:
        pixels = raw_pixels(members[0][1].run)
        random = [(folder, random_encoder(trained.run, trained.run.seed)) for folder, trained in members]
        for key, words, baseline in (
            (repr(pixels.view), "raw pixels", [(members[0][0], pixels)]),
            (tuple(encoder.digest() for _, encoder in random), "random encoder", random),
        ):
            if all(key != known for known, _ in found):
                found.append((key, (f"{words} as {name} sees them" if "pixels" in words else f"{words} of {name}",
                                    baseline, False)))  # fmt: skip
    return [group for _, group in found]


class _Judge:
    """Judges one encoder after the other, or reads what came out before."""

    def __init__(
        self, train: Source, test: Source, kind: str, work: Work, told: Callable[[str], None], count: int
    ) -> None:
        self.images, self.work, self.told, self.count, self.done = (train, test, kind), work, told, count, 0

    def __call__(self, protocol: EvaluationProtocol, name: str, folder: Path, encoder: Trained) -> Outcome:
        """From its record, or made now and recorded."""
        self.done += 1
        train, test, kind = self.images
        empty = result_of(protocol, encoder, train, test, kind, {}, self.work)
        known = _recorded(folder, encoder.name, empty)
        by = _words(protocol.name, changed(protocol))
        read = ", read from its record" if known is not None else ""
        self.told(f"{self.done} of {self.count}: {name}, seed {encoder.run.seed}, by {by}{read}")
        if known is not None:
            return known
        outcome = protocol(encoder, train, test, self.work)
        keep(replace(empty, outcomes={encoder.name: outcome}), folder)
        return outcome


def _recorded(folder: Path, encoder: str, empty: Result) -> Outcome | None:
    """What the run's folder holds of the same evaluation, whatever came out."""
    asked = _facts(asdict(empty))
    for file in sorted((folder / "evaluations").glob(f"{empty.protocol}-v{empty.version}-*.json")):
        try:
            record = json.loads(file.read_text())
            if _facts(record) == asked and encoder in record["outcomes"]:
                return Outcome(**record["outcomes"][encoder])
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue  # not a record of ours: judged anew
    return None


def _facts(record: dict[str, Any]) -> Any:
    """All that decides an outcome, as plain data."""
    return json.loads(json.dumps({key: value for key, value in record.items() if key != "outcomes"}))


def _words(protocol: str, settings: Sequence[Changed]) -> str:
    return " ".join((protocol, *map(str, settings)))


def _column(number: int, protocol: EvaluationProtocol, measure: str, rows: Sequence[Row]) -> Column:
    """What can be said of the trained rows: the best against each other one."""
    trained = sorted((row for row in rows if row.trained), key=lambda row: -row.cells[number].mean)
    top, found = trained[0], []
    for other in trained[1:]:
        paired = sorted(top.seeds) == sorted(other.seeds)
        values = [
            [value for _, value in sorted(zip(row.seeds, row.cells[number].values, strict=True))]
            for row in (top, other)
        ]
        if len(top.seeds) >= FEWEST and (gap := difference(values[0], values[1], paired)) is not None:
            found.append((top.name, other.name, gap))
    corrected = holm([gap.p for _, _, gap in found])
    told = tuple((*each, p) for each, p in zip(found, corrected, strict=True))
    sure = len(found) == len(trained) - 1 > 0 and all(p < LEVEL for p in corrected)
    best = top.name if sure else None
    return Column(protocol.name, protocol.version, measure, told, best, changed(protocol))
