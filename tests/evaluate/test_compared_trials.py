"""Comparisons by tasks: means of several trials, several measures, and what a task cannot judge."""

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from seeded_runs import runs
from tiny import ALLOW, cpu_work, images

from vantage.composition.codec import allowing
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import KNN, Outcome
from vantage.evaluate.compare.comparison import Comparison, compare_by
from vantage.evaluate.compare.table import as_csv, as_latex, as_markdown, notes
from vantage.evaluate.compare.trials import Refusal
from vantage.evaluate.task import Task
from vantage.frozen.encoder import FrozenEncoder


@dataclass(frozen=True)
class RandomDraws:
    """A protocol that measures ten times the run's seed plus its own."""

    name: ClassVar[str] = "drawn"
    version: ClassVar[int] = 1
    calls: ClassVar[list[tuple[str, int, int]]] = []

    seed: int = 0

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        self.calls.append((encoder.name, encoder.run.seed, self.seed))
        number = 10.0 * encoder.run.seed + self.seed
        return Outcome({"AP": number, "AP50": 50.0 + number}, len(train), len(test), {})


def not_seed_7(encoder: FrozenEncoder) -> None:
    if encoder.run.seed == 7:
        raise UserError("this one cannot be judged")


OF_NETWORKS: dict[str, Any] = {"pixels": "raw pixels have no network", "check": not_seed_7}
"""Options of a task that judges networks only, and none of seed 7."""


def compare_tasks(folders: list[Path], tmp_path: Path, *tasks: Task, report=lambda line: None) -> Comparison:
    with allowing(*ALLOW):
        return compare_by(folders, tasks, cpu_work(tmp_path), report)


def task_of(protocol, split: str = "a set of its own", **other) -> Task:
    return Task(protocol, images(30, 0), images(12, 1), split, **other)


def test_the_mean_of_trials_is_the_number_of_a_run(tmp_path: Path) -> None:
    folders, task, lines = runs(tmp_path, good=(1, 2)), task_of(RandomDraws(seed=3), trials=3), []
    RandomDraws.calls.clear()
    table = compare_tasks(folders, tmp_path, task, report=lines.append)
    assert [seed for name, run, seed in RandomDraws.calls if (name, run) == ("good", 2)] == [3, 4, 5]
    assert lines[1] == "2 of 15: good, seed 1, by drawn seed=3, trial 2 of 3" and len(lines) == 15
    cell = table.rows[0].cell(0)
    assert cell.values == (14.0, 24.0) and cell.trials == ((13.0, 14.0, 15.0), (23.0, 24.0, 25.0))
    assert (cell.deviation, cell.over) == (pytest.approx(50**0.5), "seeds")
    assert "drawn: the mean of 3 trials of each run, each with its own seed." in " ".join(notes(table))
    row = next(iter(csv.DictReader(io.StringIO(as_csv(table)))))
    assert (row["values"], row["sd over"], row["trials"]) == ("14.0 24.0", "seeds", "13.0 14.0 15.0; 23.0 24.0 25.0")
    count = len(RandomDraws.calls)
    assert compare_tasks(folders, tmp_path, replace(task, trials=4)).rows[0].cell(0).values == (14.5, 24.5)
    assert len(RandomDraws.calls) == count + 5  # the fourth of each: what was judged is not judged again


def test_a_single_run_has_a_deviation_over_its_trials_and_no_test(tmp_path: Path) -> None:
    table = compare_tasks(runs(tmp_path, good=(1,), bad=(0,)), tmp_path, task_of(RandomDraws(), trials=3))
    cell = table.rows[0].cell(0)
    assert (cell.values, cell.deviation, cell.over) == ((11.0,), 1.0, "trials")
    assert "11.00 ± 1.00" in as_markdown(table) and not table.columns[0].differences and table.columns[0].best is None
    assert "For a single run, ± is over its trials and says nothing about other runs." in as_markdown(table)
    with pytest.raises(UserError, match="drawn: trials is 0; it must be 1 or more"):
        task_of(RandomDraws(), trials=0)
    with pytest.raises(UserError, match="knn: trials is 2, but this protocol draws nothing at random"):
        task_of(KNN(), trials=2)


def test_raw_pixels_have_an_empty_cell_where_a_protocol_cannot_judge_them(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0,))
    table = compare_tasks(
        folders, tmp_path, task_of(KNN(k=3), split="here"), task_of(RandomDraws(), "there", **OF_NETWORKS)
    )
    assert [row.name.split()[0] for row in table.rows] == ["good", "raw", "random"]
    assert [[cell is None for cell in row.cells] for row in table.rows] == [[False, False], [False, True], [False] * 2]
    text = as_markdown(table)
    assert text.splitlines()[3].split("|")[4].strip() == "–" and " & -- \\\\" in as_latex(table)
    assert "- drawn: raw pixels have no network, so that cell is empty." in text.splitlines()
    assert "Test images: knn: here; drawn: there." in text
    row = list(csv.DictReader(io.StringIO(as_csv(table))))[3]
    assert (row["protocol"], row["values"], row["mean"], row["sd"], row["n"]) == ("drawn", "", "", "", "0")


def test_refused_runs_are_reported_before_anything_is_judged(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0, 7))
    RandomDraws.calls.clear()
    with pytest.raises(UserError, match="good-7 by drawn: this one cannot be judged"):
        compare_tasks(folders, tmp_path, task_of(RandomDraws(), **OF_NETWORKS))
    assert not RandomDraws.calls
    with pytest.raises(Refusal, match="needs as many labeled training images") as error:
        compare_tasks(folders[:1], tmp_path, task_of(KNN(k=31)))
    assert error.value.protocol == KNN(k=31)


def test_several_measures_of_a_protocol_are_columns(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0, 1))
    table = compare_tasks(folders, tmp_path, task_of(RandomDraws(), measures=("AP50", "AP", "AP50")))
    assert [column.measure for column in table.columns] == ["AP50", "AP"]
    assert [cell.values for cell in table.rows[0].cells if cell] == [(50.0, 60.0), (0.0, 10.0)]
    with pytest.raises(UserError, match="drawn measures AP, AP50 on these images, not 'AP75'"):
        compare_tasks(folders, tmp_path, task_of(RandomDraws(), measures=("AP75",)))
