"""Numbers in files of results count as long as the settings of the measure that made them are the same."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from vantage.evaluate import KNN
from vantage.recipes import moco_v2
from vantage.storage.cache import digest
from vantage.studies.analyse.spread import SpreadToy
from vantage.studies.analyse.toy import TrainedToy
from vantage.studies.lab import Cell, Entry, Untrained, numbers_in, outdated
from vantage.studies.lab.making.compositions import composition, encode_measure
from vantage.studies.lab.making.results import complete_seeds
from vantage.studies.lab.measures.vectors import FalseByBand, ProtocolAccuracy
from vantage.studies.lab.measures.view_information import ViewInformation
from vantage.studies.lab.two_cores import base

KNN_5, BANDS = ProtocolAccuracy((KNN(k=5),)), FalseByBand()
CELL = Cell("random", Untrained(base(moco_v2(32))), (KNN_5, BANDS))
ENTRY = Entry("an-entry", "A", "Table 1", "a baseline", claims=(), cells=(CELL,))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A file with a number of each measure, for one seed."""
    by = {"knn": digest(encode_measure(KNN_5)), "softmax, 0 to 1 %": digest(encode_measure(BANDS))}
    measures = {"knn": {"0": 20.0}, "softmax, 0 to 1 %": {"0": 3.0}}
    cells = {"random": {"made": digest(composition(CELL.experiment)), "by": by, "measures": measures}}
    (tmp_path / "an-entry.json").write_text(json.dumps({"cells": cells, "seconds": 1, "made_on": []}))
    return tmp_path


def with_measures(*measures: Any) -> Entry:
    return replace(ENTRY, cells=(replace(CELL, measures=measures),))


def test_numbers_of_the_same_measures_count(folder: Path) -> None:
    assert numbers_in(folder, ENTRY) == {"random": {"knn": {0: 20.0}, "softmax, 0 to 1 %": {0: 3.0}}}
    assert complete_seeds(folder, ENTRY) == {0} and outdated(folder, ENTRY) == ()


def test_numbers_of_a_measure_with_other_settings_do_not_count(folder: Path) -> None:
    """A protocol of the same name, or the same measure on other images: the other measures of the cell stay."""
    entry = with_measures(ProtocolAccuracy((KNN(k=20),)), BANDS)
    assert numbers_in(folder, entry) == {"random": {"softmax, 0 to 1 %": {0: 3.0}}}
    assert outdated(folder, entry) == ("random @ knn",) and complete_seeds(folder, entry) == set()
    assert outdated(folder, with_measures(KNN_5, replace(BANDS, temperature=0.1))) == ("random @ softmax, 0 to 1 %",)


def test_a_seed_without_one_of_the_measures_is_not_complete(folder: Path) -> None:
    entry = with_measures(KNN_5, BANDS, ViewInformation())
    assert outdated(folder, entry) == () and complete_seeds(folder, entry) == set()


def test_numbers_of_another_version_of_a_measure_do_not_count(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FalseByBand, "version", 2)
    assert outdated(folder, ENTRY) == ("random @ softmax, 0 to 1 %",)


def test_numbers_collected_by_earlier_versions_count(folder: Path) -> None:
    path = folder / "an-entry.json"
    record = json.loads(path.read_text())
    del record["cells"]["random"]["by"]
    path.write_text(json.dumps(record))
    assert set(numbers_in(folder, ENTRY)["random"]) == {"knn", "softmax, 0 to 1 %"}
    assert complete_seeds(folder, ENTRY) == {0}


def test_settings_that_are_not_fields_of_an_experiment_are_those_of_its_version() -> None:
    """Experiments that measure themselves name their own settings only. If this fails, raise the version of
    `LearnedViewsCell` (the first two), `TrainedCritics` or `NegativeSpread`, and write the new digests here."""
    inner = (encode_measure(ProtocolAccuracy()), encode_measure(ViewInformation()))
    toys = (repr(asdict(TrainedToy())), repr(asdict(SpreadToy())))
    assert [digest(settings) for settings in (*inner, *toys)] == [
        "c909c42d95189b5a",
        "c55d3507a99f2504",
        "4b7e6bfc96fc0bf2",
        "05174a68eebfbcdb",
    ]
