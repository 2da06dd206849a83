"""Tables of a comparison: in each format, with the settings that are not the default."""

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest
from seeded_runs import compare_protocols, runs
from tiny import cpu_work, images

from vantage.composition.changes import changes
from vantage.errors import UserError
from vantage.evaluate import KNN, FineTune, LowShot, NearestNeighbor
from vantage.evaluate.compare.comparison import Column, Comparison, ComparisonCell, ComparisonRow, compare
from vantage.evaluate.compare.table import as_csv, as_latex, as_markdown
from vantage.evaluate.protocols.detection import Detection, Pyramid, Sizes

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


def test_changed_settings_are_shown_as_they_are_written() -> None:
    words = [str(each) for each in changes(LowShot(shots=(1, 2), costs=(0.5, 10.0)))]
    assert words == ["shots=1 2", "costs=0.5 10"] and not changes(LowShot())
    assert [each.sentence for each in changes(FineTune(weight_decay=1e-4))] == [
        "weight_decay is 0.0001 (by default None)"
    ]


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
