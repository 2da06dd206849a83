import errno
import fcntl
import json
import os
from pathlib import Path

import pytest

from vantage.errors import UserError
from vantage.storage.cache import digest
from vantage.studies.lab.making.store import LabFolder

ABOUT = {"made": {"part": "Run"}, "seed": 3}


def test_numbers_are_found_by_all_that_they_depend_on(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    assert lab.result(ABOUT) is None
    lab.keep(ABOUT, {"knn": 12.5}, 3.0, {"torch": "2"})
    record = lab.result({"seed": 3, "made": {"part": "Run"}})  # whatever the order
    assert record is not None and record["numbers"] == {"knn": 12.5} and record["seconds"] == 3.0
    assert lab.result({**ABOUT, "seed": 4}) is None
    with pytest.raises(UserError, match="not finite"):
        lab.keep(ABOUT, {"knn": float("nan")}, 1.0, {})


def test_a_damaged_or_renamed_cell_counts_as_none(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    lab.keep(ABOUT, {"knn": 12.5}, 3.0, {})
    (path,) = (tmp_path / "cells").iterdir()
    path.rename(path.with_name(f"{digest({**ABOUT, 'seed': 4})}.json"))
    assert lab.result({**ABOUT, "seed": 4}) is None
    lab.keep(ABOUT, {"knn": 12.5}, 3.0, {})
    path.write_text("{")
    assert lab.result(ABOUT) is None


def test_what_another_holds_is_passed_over(tmp_path: Path) -> None:
    lab = LabFolder(tmp_path)
    with lab.lock("key") as first, lab.lock("key") as second, lab.lock("other") as third:
        assert (first, second, third) == (True, False, True)
    with lab.lock("key") as again:
        assert again


def test_without_locks_work_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    with LabFolder(tmp_path).lock("key") as locked:
        assert locked


def test_cells_from_elsewhere_are_checked(tmp_path: Path) -> None:
    theirs = LabFolder(tmp_path / "theirs")
    for seed in range(4):
        theirs.keep({**ABOUT, "seed": seed}, {"knn": 10.0 + seed}, 1.0, {})
    paths = sorted((theirs.folder / "cells").glob("*.json"))
    forged_record, broken_record = json.loads(paths[0].read_text()), json.loads(paths[1].read_text())
    forged_record["about"]["seed"] = 99  # no longer what its name says
    broken_record["numbers"] = {"knn": "many"}
    paths[0].write_text(json.dumps(forged_record))
    paths[1].write_text(json.dumps(broken_record))
    mine = LabFolder(tmp_path / "mine")
    assert mine.take_in(theirs.folder) == (2, 2) and mine.take_in(theirs.folder) == (0, 2)
