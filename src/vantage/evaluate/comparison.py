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
from vantage.evaluate.evaluation import keep, parted, result_of
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
    train, test, kind = parted(train, test)
    groups = _grouped([(folder, load(folder)) for folder in folders])
    todo = [(name, members, trained) for name, members, trained in (*groups, *_baselines(groups))]
    measured: dict[str, list[Cell]] = {name: [] for name, _, _ in todo}
    names: list[str] = []
    for protocol in protocols:
        first = ""
        for name, members, _ in todo:
            values = []
            for folder, encoder in members:
                told(f"{protocol.name}: {name}, seed {encoder.run.seed}")
                outcome = _outcome(folder, encoder, protocol, train, test, kind, work)
                first = next(iter(outcome.measures))
                values.append(outcome.measures[first])
            measured[name].append(Cell(tuple(values)))
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


def _outcome(
    folder: Path, encoder: Trained, protocol: EvaluationProtocol, train: Source, test: Source, kind: str, work: Work
) -> Outcome:
    """From its record, or made now and recorded."""
    asked = _facts(asdict(result_of(protocol, encoder, train, test, kind, {}, work)))
    for file in sorted((folder / "evaluations").glob(f"{protocol.name}-v{protocol.version}-*.json")):
        try:
            record = json.loads(file.read_text())
            if _facts(record) == asked and encoder.name in record["outcomes"]:
                return Outcome(**record["outcomes"][encoder.name])
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            continue  # not a record of ours: judged anew
    outcome = protocol(encoder, train, test, work)
    keep(result_of(protocol, encoder, train, test, kind, {encoder.name: outcome}, work), folder)
    return outcome


def _facts(record: dict[str, Any]) -> Any:
    """All that decides an outcome, as plain data."""
    return json.loads(json.dumps({key: value for key, value in record.items() if key != "outcomes"}))


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
    return Column(protocol.name, protocol.version, measure, told, top.name if sure else None)
