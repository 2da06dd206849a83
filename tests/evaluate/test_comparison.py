"""Comparisons: which runs share a row, what is read from records, and which differences count."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from seeded_runs import compare_protocols, runs
from tiny import ALLOW, cpu_work, images, saved_run, tiny_run

from vantage.composition.codec import allowing
from vantage.data.sources.arrays import Arrays
from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import KNN, NearestNeighbor, Outcome, Retrieval, evaluate
from vantage.evaluate.compare.comparison import compare
from vantage.evaluate.compare.table import as_latex, as_markdown, notes
from vantage.frozen.encoder import FrozenEncoder
from vantage.views import moco_v2_views


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


def test_a_random_encoder_sees_images_as_the_runs_do_that_it_stands_beside(tmp_path: Path) -> None:
    for name, size in (("small", 16), ("large", 32)):
        saved_run(tmp_path / name, replace(tiny_run(), recipe=name, views=moco_v2_views(size=size)))
    table = compare_protocols([tmp_path / "small", tmp_path / "large"], tmp_path, ByName(()))
    assert [row.name for row in table.rows if not row.trained] == [
        "raw pixels as small sees them",
        "random encoder of small",
        "raw pixels as large sees them",
        "random encoder of large",
    ]


@pytest.mark.slow
def test_runs_of_one_row_began_alike(tmp_path: Path) -> None:
    """The settings say neither what a run started from nor, if the images came from Python, which they were."""
    folders = runs(tmp_path, good=(0, 1, 2, 3, 4, 5, 6))
    taken, new = {"network.backbone": "taken"}, {"network.backbone": "new"}
    started = {"from": "a", "sha256": "5", "step": 9, "parts": taken}
    record = {"data": {"fingerprint": "photos", "images": 64}, "init": started}
    records = [
        record,
        record | {"init": started | {"from": "b", "sha256": "6"}},  # the same start, of another seed
        {"data": record["data"]},
        record | {"data": {"fingerprint": "others", "images": 64}},
        record | {"init": started | {"parts": new}},
        record | {"init": started | {"step": None}},
        record | {"init": started | {"step": None, "sha256": "6"}},  # another file of weights
    ]
    for folder, one in zip(folders, records, strict=True):
        (folder / "provenance.json").write_text(json.dumps([one]))
    scores = (50.0, 51.0, 52.0, 53.0, 54.0, 55.0, 56.0)
    table = compare_protocols(folders, tmp_path, ByName((("good", scores), ("random encoder", scores))))
    assert [row.seeds for row in table.rows if row.trained] == [(0, 1), (2,), (3,), (4,), (5,), (6,)]
    assert [row.name for row in table.rows][:3] == ["good (good-0)", "good (good-2)", "good (good-3)"]


def test_a_run_and_its_warm_start_with_one_seed_can_be_compared(tmp_path: Path) -> None:
    (first,), (second,) = runs(tmp_path / "a", good=(0,)), runs(tmp_path / "b", good=(0,))
    data, start = {"fingerprint": "photos", "images": 64}, {"from": "a", "sha256": "5", "step": 9, "parts": {}}
    (second / "provenance.json").write_text(json.dumps([{"data": data, "init": start}]))
    table = compare_protocols([first, second], tmp_path, ByName((("good", (50.0,)),)))
    assert [row.seeds for row in table.rows if row.trained] == [(0,), (0,)]


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


def test_what_evaluate_measured_with_the_same_settings_is_read(tmp_path: Path) -> None:
    folders, lines = runs(tmp_path, good=(0,)), []
    with allowing(*ALLOW):
        result = evaluate(folders[0], KNN(k=3), images(30, 0), images(12, 1), work=cpu_work(tmp_path))
        table = compare(folders, [KNN(k=3), KNN(k=4)], images(30, 0), images(12, 1), cpu_work(tmp_path), lines.append)
    assert table.rows[0].cell(0).values == (result.outcomes["good"].measures["top-1"],)
    assert lines[0] == "1 of 6: good, seed 0, by knn k=3, read from its record"
    assert lines[3] == "4 of 6: good, seed 0, by knn k=4" and sum("read" in line for line in lines) == 1


def test_baselines_that_evaluate_judged_are_read(tmp_path: Path) -> None:
    folders, lines = runs(tmp_path, good=(0,)), []
    with allowing(*ALLOW):
        result = evaluate(folders[0], KNN(k=3), images(30, 0), images(12, 1), baselines=True, work=cpu_work(tmp_path))
        table = compare(folders, [KNN(k=3)], images(30, 0), images(12, 1), cpu_work(tmp_path), lines.append)
    assert sum("read from its record" in line for line in lines) == len(lines) == 3
    assert [row.cell(0).mean for row in table.rows] == [one.measures["top-1"] for one in result.outcomes.values()]


def test_a_record_of_other_images_or_of_other_code_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fingerprint reads at most 32 images: the row of a set of which others were replaced was read."""
    folders, lines = runs(tmp_path, good=(0,)), list[str]()
    pixels, label = np.random.default_rng(0).integers(0, 256, (90, 32, 32, 3), np.uint8), np.arange(90) % 3
    changed = pixels.copy()
    changed[1] = 0
    sets = [Arrays(each, label, "set") for each in (pixels, changed)]
    assert sets[0].fingerprint() == sets[1].fingerprint()
    protocol = ByName((("good", (50.0,)),))
    with allowing(*ALLOW):
        for train in (*sets, sets[1]):
            compare(folders, [protocol], train, images(12, 1), cpu_work(tmp_path), lines.append)
        before = ByName.__call__
        monkeypatch.setattr(ByName, "__call__", lambda self, *rest: before(self, *rest))
        compare(folders, [protocol], sets[1], images(12, 1), cpu_work(tmp_path), lines.append)
    assert ["read" in line for line in lines] == [False] * 6 + [True] * 3 + [False] * 3


def test_a_record_that_does_not_name_files_is_read_as_before(tmp_path: Path) -> None:
    folders, lines = runs(tmp_path, good=(0,)), list[str]()
    with allowing(*ALLOW):
        compare(folders, [KNN(k=3)], images(30, 0), images(12, 1), cpu_work(tmp_path), lines.append)
        for file in (folders[0] / "evaluations").glob("*.json"):
            record = json.loads(file.read_text())
            assert record.pop("files") and record.pop("code") == ""
            file.write_text(json.dumps(record))
        compare(folders, [KNN(k=3)], images(30, 0), images(12, 1), cpu_work(tmp_path), lines.append)
    assert ["read" in line for line in lines] == [False] * 3 + [True] * 3
