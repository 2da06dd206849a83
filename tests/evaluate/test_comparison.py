"""Comparisons: which runs share a row, what is read from records, and which differences count."""

import csv
import io
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from tiny import ALLOW, cpu_work, images, saved_run, tiny_run

from vantage.composition.changes import changes
from vantage.composition.codec import allowing
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import KNN, FineTune, LowShot, NearestNeighbor, Outcome, Retrieval, evaluate
from vantage.evaluate.compare.comparison import Column, Comparison, ComparisonCell, ComparisonRow, compare, compare_by
from vantage.evaluate.compare.table import as_csv, as_latex, as_markdown, notes
from vantage.evaluate.compare.trials import Refusal
from vantage.evaluate.protocols.detection import Detection, Pyramid, Sizes
from vantage.evaluate.task import Task
from vantage.frozen.encoder import FrozenEncoder
from vantage.training.run import Monitoring


@dataclass(frozen=True)
class ByName:
    """A protocol whose measures a test sets, by recipe and seed."""

    name: ClassVar[str] = "by-name"
    version: ClassVar[int] = 3
    calls: ClassVar[list[tuple[str, int]]] = []

    table: tuple[tuple[str, tuple[float, ...]], ...]

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        self.calls.append((encoder.name, encoder.run.seed))
        numbers = dict(self.table).get(encoder.name, (10.0, 11.0, 12.0, 13.0))
        return Outcome({"score": numbers[encoder.run.seed], "other": 0.0}, len(train), len(test), {})


def runs(folder: Path, **seeds: tuple[int, ...]) -> list[Path]:
    """Runs of some recipes with some seeds."""
    folders = []
    for recipe, some in seeds.items():
        for seed in some:
            folders.append(folder / f"{recipe}-{seed}")
            run = replace(tiny_run(), recipe=recipe, seed=seed, epochs=200 + len(recipe))
            saved_run(folders[-1], replace(run, monitoring=Monitoring(log_every=seed + 1)), seed)
    return folders


def compare_protocols(folders: list[Path], tmp_path: Path, *protocols) -> Comparison:
    with allowing(*ALLOW):
        return compare(folders, protocols, images(30, 0), images(12, 1), cpu_work(tmp_path))


def test_runs_that_differ_in_their_seed_are_one_row_and_baselines_come_last(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0, 1, 2), bad=(0, 1, 2))
    table = compare_protocols(folders, tmp_path, ByName((("good", (50.0, 51.0, 53.0)), ("bad", (40.0, 42.0, 43.0)))))
    assert [(row.name, row.seeds, row.trained) for row in table.rows] == [
        ("good", (0, 1, 2), True),
        ("bad", (0, 1, 2), True),
        ("raw pixels as good sees them", (0,), False),
        ("random encoder of good", (0, 1, 2), False),
    ]
    (column,) = table.columns
    assert (column.protocol, column.version, column.measure, column.best) == ("by-name", 3, "score", "good")
    cell = table.rows[0].cell(0)
    assert cell.values == (50.0, 51.0, 53.0) and cell.mean == pytest.approx(154 / 3)
    assert cell.deviation == pytest.approx(float(np.std(cell.values, ddof=1)))
    ((best, other, gap, p),) = column.differences
    assert (best, other, gap.test, gap.n, gap.mean) == ("good", "bad", "paired t", (3, 3), pytest.approx(29 / 3))
    assert p == gap.p < 0.05  # one comparison: nothing to correct


def test_a_difference_within_the_spread_is_never_bold(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0, 1, 2), bad=(1, 2, 3))
    table = compare_protocols(
        folders, tmp_path, ByName((("good", (50.0, 51.0, 56.0)), ("bad", (0.0, 50.0, 51.0, 54.0))))
    )
    (column,) = table.columns
    assert column.best is None and column.differences[0][2].test == "Welch's t"
    assert "**" not in as_markdown(table) and "boldmath" not in as_latex(table)
    assert "within the spread (Welch's t, n = 3, p = " in as_markdown(table)


def test_two_seeds_are_not_tested(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0, 1), bad=(0, 1, 2))
    table = compare_protocols(folders, tmp_path, ByName((("good", (90.0, 90.1)), ("bad", (1.0, 1.1, 1.2)))))
    assert table.columns[0].best is None and not table.columns[0].differences and len(notes(table)) == 1


def test_records_are_read_and_broken_ones_are_replaced(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0, 1))
    protocol = ByName((("good", (50.0, 51.0)),))
    ByName.calls.clear()
    first = compare_protocols(folders, tmp_path, protocol)
    calls = list(ByName.calls)
    assert sorted(calls) == [("good", 0), ("good", 1), ("random encoder", 0), ("random encoder", 1), ("raw pixels", 0)]
    assert compare_protocols(folders, tmp_path, protocol) == first and calls == ByName.calls
    (record,) = [file for file in (folders[1] / "evaluations").glob("*.json") if '"good": {' in file.read_text()]
    record.write_text("{ half")
    assert compare_protocols(folders, tmp_path, protocol) == first
    assert ByName.calls[len(calls) :] == [("good", 1)]
    compare_protocols(folders, tmp_path, ByName((("good", (60.0, 61.0)),)))  # other settings
    assert len(ByName.calls) == 2 * len(calls) + 1


def test_published_protocols_and_two_rows_of_one_recipe(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0,))
    saved_run(tmp_path / "longer", replace(tiny_run(), recipe="good", epochs=999), 5)
    table = compare_protocols([*folders, tmp_path / "longer"], tmp_path, NearestNeighbor(), Retrieval(3))
    assert [row.name for row in table.rows][:2] == ["good (good-0)", "good (longer)"]
    assert [column.measure for column in table.columns] == ["top-1", "precision at 3"]
    assert all(row.cell(0).deviation is None for row in table.rows)


def test_rows_of_one_recipe_in_folders_of_one_name_keep_their_own_numbers(tmp_path: Path) -> None:
    folders = [tmp_path / "one" / "run", tmp_path / "two" / "run"]
    for seed, folder in enumerate(folders):
        saved_run(folder, replace(tiny_run(), recipe="good", epochs=200 + seed, seed=seed))
    table = compare_protocols(folders, tmp_path, ByName((("good", (40.0, 50.0)),)))
    assert [row.name for row in table.rows][:2] == [f"good ({folder.resolve()})" for folder in folders]
    assert [row.cell(0).values for row in table.rows][:2] == [(40.0,), (50.0,)]


def test_runs_that_cannot_be_compared_are_refused(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0,))
    with pytest.raises(UserError, match="named twice"):
        compare_protocols([*folders, *folders], tmp_path, NearestNeighbor())
    saved_run(tmp_path / "again", replace(tiny_run(), recipe="good", epochs=204), 9)
    with pytest.raises(UserError, match="second run with the same settings and the same seed"):
        compare_protocols([*folders, tmp_path / "again"], tmp_path, NearestNeighbor())
    with pytest.raises(UserError, match="0 runs by 1 protocols"):
        compare_protocols([], tmp_path, NearestNeighbor())
    with pytest.raises(UserError, match="the test images are the training images"):
        compare(folders, [NearestNeighbor()], images(9, 0), images(9, 0), cpu_work(tmp_path))


TABLE = Comparison(
    (Column("knn", 1, "top-1", (), "a_b"), Column("svm", 2, "mAP (share)", (), None)),
    (
        ComparisonRow("a_b", (0, 1), True, (ComparisonCell((50.0, 52.0)), ComparisonCell((0.5, 0.75)))),
        ComparisonRow("raw | pixels", (0,), False, (ComparisonCell((20.0,)), ComparisonCell((0.25,)))),
    ),
    "a set of its own",
)


def test_markdown_has_bold_units_and_no_deviation_of_one_number() -> None:
    lines = as_markdown(TABLE).splitlines()
    assert lines[0].split("|")[3].strip() == "knn v1, top-1 (%)" and "svm v2, mAP (share) |" in lines[0]
    assert "| **51.00 ± 1.41** " in lines[2] and "0.62 ± 0.18" in lines[2]
    assert "raw \\| pixels" in lines[3] and "| 20.00 " in lines[3] and "±" not in lines[3]
    assert len({len(line) for line in lines[:4]}) == 1


def test_csv_is_read_back_with_every_number() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(TABLE))))
    assert len(rows) == 4 and rows[0]["values"] == "50.0 52.0" and float(rows[0]["mean"]) == 51.0
    assert float(rows[0]["sd"]) == pytest.approx(2**0.5) and rows[0]["best"] == "1" and rows[2]["sd"] == ""


def test_latex_escapes_and_counts_its_columns() -> None:
    text = as_latex(TABLE)
    assert "\\begin{tabular}{llrr}" in text and "a\\_b & 0, 1 & {\\boldmath$51.00 \\pm 1.41$} &" in text
    assert "top-1 (\\%)" in text
    body = [line for line in text.splitlines() if line.endswith("\\\\")]
    assert len(body) == 3 and all(line.count(" & ") == 3 for line in body)


def test_a_table_names_the_settings_that_differ_from_the_default(tmp_path: Path) -> None:
    folders = runs(tmp_path, good=(0,))
    table = compare_protocols(folders, tmp_path, KNN(k=3), KNN(k=5, temperature=0.5), NearestNeighbor())
    assert [column.name for column in table.columns] == ["knn k=3", "knn k=5 temperature=0.5", "nearest-neighbor"]
    text = as_markdown(table)
    head = [word.strip() for word in text.splitlines()[0].split("|")]
    assert head[3:6] == [
        "knn v1 k=3, top-1 (%)",
        "knn v1 k=5 temperature=0.5, top-1 (%)",
        "nearest-neighbor v1, top-1 (%)",
    ]
    assert "- knn: k is 5 (by default 200), temperature is 0.5 (by default 0.07)." in text.splitlines()
    assert "k is 3 (by default 200)" in as_latex(table)
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert [row["settings"] for row in rows[:3]] == ["k=3", "k=5, temperature=0.5", ""]
    with pytest.raises(UserError, match="knn is named twice with the same settings"):
        compare(folders, [KNN(k=3), KNN(k=3)], images(9, 0), images(9, 1), cpu_work(tmp_path))


def test_what_evaluate_measured_with_the_same_settings_is_read(tmp_path: Path) -> None:
    folders, lines = runs(tmp_path, good=(0,)), []
    with allowing(*ALLOW):
        result = evaluate(folders[0], KNN(k=3), images(30, 0), images(12, 1), work=cpu_work(tmp_path))
        table = compare(folders, [KNN(k=3), KNN(k=4)], images(30, 0), images(12, 1), cpu_work(tmp_path), lines.append)
    assert table.rows[0].cell(0).values == (result.outcomes["good"].measures["top-1"],)
    assert lines[0] == "1 of 6: good, seed 0, by knn k=3, read from its record"
    assert lines[3] == "4 of 6: good, seed 0, by knn k=4" and sum("read" in line for line in lines) == 1


def test_changed_settings_are_shown_as_they_are_written() -> None:
    words = [str(each) for each in changes(LowShot(shots=(1, 2), costs=(0.5, 10.0)))]
    assert words == ["shots=1 2", "costs=0.5 10"] and not changes(LowShot())
    assert [each.sentence for each in changes(FineTune(weight_decay=1e-4))] == [
        "weight_decay is 0.0001 (by default None)"
    ]


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


def test_baselines_that_evaluate_judged_are_read(tmp_path: Path) -> None:
    folders, lines = runs(tmp_path, good=(0,)), []
    with allowing(*ALLOW):
        result = evaluate(folders[0], KNN(k=3), images(30, 0), images(12, 1), baselines=True, work=cpu_work(tmp_path))
        table = compare(folders, [KNN(k=3)], images(30, 0), images(12, 1), cpu_work(tmp_path), lines.append)
    assert sum("read from its record" in line for line in lines) == len(lines) == 3
    assert [row.cell(0).mean for row in table.rows] == [one.measures["top-1"] for one in result.outcomes.values()]


def test_many_changed_settings_are_listed_below_the_table(tmp_path: Path) -> None:
    protocol = Detection(steps=5, batch_size=2, sizes=Sizes(test_side=400), network_on=Pyramid(frozen_stages=2))
    words = [str(each) for each in changes(protocol)]
    assert words == ["steps=5", "batch_size=2", "sizes.test_side=400", "network_on.frozen_stages=2"] and not changes(
        Detection()
    )
    column = Column("detection", 1, "AP", (), None, changes(protocol))
    table = Comparison((column,), (ComparisonRow("a", (0,), True, (ComparisonCell((1.0,)),)),), "here")
    assert "| detection v1 (4 settings below), AP (%) |" in as_markdown(table)
    assert "network_on.frozen_stages is 2 (by default 0)" in as_markdown(table)
    other = Column("detection", 1, "AP", (), None, changes(replace(protocol, seed=1)))
    both = Comparison(
        (column, other), (ComparisonRow("a", (0,), True, (ComparisonCell((1.0,)), ComparisonCell((2.0,)))),), "here"
    )
    assert "steps=5 batch_size=2 sizes.test_side=400 network_on.frozen_stages=2, AP" in as_markdown(both)
