"""What results files say about how to repeat their numbers."""

from pathlib import Path
from typing import Any

import pytest
from lab_entries import entry_of

from vantage.studies.lab import ENTRIES, LEVELS
from vantage.studies.lab.levels import overnight
from vantage.studies.lab.making.repeating import image_sets, with_commands
from vantage.studies.lab.making.results import PUBLISHED_RESULTS, read_results, results_file


def record(level: str, cells: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    rows = {
        name: {"made": "", "measures": {"knn": {str(seed): 1.0 for seed in seeds}}} for name, seeds in cells.items()
    }
    return {"level": level, "cells": rows}


def test_a_command_for_each_range_of_seeds() -> None:
    entry = overnight(entry_of("cnce-table-1"))
    file = with_commands(
        entry, record("overnight", {"MoCo base": (0, 1, 2), "MoCo": (1, 2, 11, 10), "raw pixels": (0,)})
    )
    line = "vantage reproduce cnce-table-1 --level overnight --data tiny-imagenet-50=PATH --seeds {}"
    assert file["commands"] == [line.format("0..2"), line.format("10..11")]


def test_a_cell_has_seen_the_images_of_its_base_too() -> None:
    """MoCo v2's four epochs of 7,488 images, two views of each, and one more, with two views or with JCL's six."""
    entry = entry_of("jcl-table-1")
    cells = with_commands(entry, record("two-cores", {cell.name: (0,) for cell in entry.runnable_cells}))["cells"]
    base, raw, *branches = (cells[name] for name in ("base", "raw pixels", "JCL", "MoCo v2"))
    assert (base["images"], base["views"]) == (29_952, 59_904)
    assert [(one["images"], one["views"]) for one in branches] == [(37_440, 104_832), (37_440, 74_880)]
    assert "images" not in raw


def test_the_sets_that_other_measures_need_are_named() -> None:
    assert image_sets(entry_of("cnce-table-3")) == ("tiny-imagenet-50", "cifar-10", "flowers5", "mnist")
    assert with_commands(entry_of("cnce-appendix-c"), record("two-cores", {"optimal critic": (0,)}))["commands"] == [
        "vantage reproduce cnce-appendix-c --level two-cores --seeds 0..0"
    ]


@pytest.mark.parametrize("level", LEVELS, ids=lambda level: level.name)
def test_published_files_say_how_to_repeat_them(level: Any, repository: Path) -> None:
    folder = level.folder(repository / PUBLISHED_RESULTS)
    files = [(entry, results_file(folder, entry)) for entry in map(level.entry, ENTRIES)]
    records = [(entry, read_results(file)) for entry, file in files if file.exists()]
    assert len(records) >= 6
    for entry, file in records:
        assert file == with_commands(entry, file) and file["commands"], entry.name
