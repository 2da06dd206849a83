"""The folder of a sweep or of a lab from a stranger, its numbers, and cells from elsewhere: refused in a line, and
nothing outside is read or written."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import write_images
from test_strangers import folder, huge, link

from vantage.cli import main
from vantage.storage.cache import digest
from vantage.studies.lab.making.store import LabFolder

Attack = Callable[[Path], None]

OUT, PIPE, HUGE = "leads to no file", "a pipe or a device", "no such file that Vantage wrote"
ENTRY = "cnce-table-5"
LAB = (f"reproduce {ENTRY} --level smoke --out lab", f"reproduce {ENTRY} --level smoke --out lab --missing")
NUMBERS = ("reproduce --results numbers", "reproduce --page page.md --results numbers", f"{LAB[0]} --results numbers")
IN = (f"{LAB[0]} --take-in theirs",)
SWEEP = ("analyse views jitter --data images.npz --out sweep --values 0.5",)

ATTACKS = (
    *(("sweep", name, link("../victim/file"), OUT) for name in ("sweep.json", "jitter.csv", "jitter.png")),
    *(("sweep", name, link("../victim"), OUT) for name in ("runs", "events")),
    ("sweep", "runs/0.5-seed-0-abcdef", link("../../victim"), OUT),
    ("sweep", "runs/0.5-seed-0-abcdef/settings.json", link("../../../victim/file"), OUT),
    ("sweep", "sweep.json", os.mkfifo, PIPE),
    ("sweep", "sweep.json", folder, "is a folder where a file"),
    ("sweep", "sweep.json", huge, HUGE),
    *(("lab", name, link("../victim"), OUT) for name in ("cells", "locks", "runs", "cache", "smoke-results")),
    ("lab", "cells/0123456789abcdef.json", link("../../victim/file"), OUT),
    ("lab", "locks/0123456789abcdef", link("../../victim/new"), OUT),
    ("lab", "runs/0123456789abcdef", link("../../victim"), OUT),
    ("lab", "runs/0123456789abcdef/done.json", link("../../../victim/file"), OUT),
    ("lab", "runs/0123456789abcdef/checkpoint", link("../../../victim"), OUT),
    ("lab", "cells/0123456789abcdef.json", os.mkfifo, PIPE),
    ("lab", "locks/0123456789abcdef", os.mkfifo, PIPE),
    ("lab", "cells/0123456789abcdef.json", huge, HUGE),
    ("lab", "runs/0123456789abcdef/metrics.jsonl", huge, HUGE),
    ("numbers", f"{ENTRY}.json", link("../victim/file"), OUT),
    ("numbers", "one-gpu", link("../victim"), OUT),
    ("numbers", "maps", link("../victim"), OUT),
    ("numbers", "maps/interclr-figure-7.json", link("../../victim/file"), OUT),
    ("numbers", f"{ENTRY}.json", os.mkfifo, PIPE),
    ("numbers", f"{ENTRY}.json", huge, HUGE),
    ("theirs", "cells", link("../victim"), OUT),
    ("theirs", "cells/0123456789abcdef.json", link("../../victim/file"), OUT),
    ("theirs", "cells/0123456789abcdef.json", os.mkfifo, PIPE),
    ("theirs", "cells/0123456789abcdef.json", huge, HUGE),
)
VERBS = {"sweep": SWEEP, "lab": LAB, "numbers": NUMBERS, "theirs": IN}


@pytest.fixture(autouse=True)
def _beside_what_is_mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "file").write_text("mine")
    write_images(tmp_path / "images.npz")


def untouched() -> bool:
    return [*Path("victim").iterdir()] == [Path("victim/file")] and Path("victim/file").read_text() == "mine"


def refusal(capsys: pytest.CaptureFixture[str]) -> str:
    """The only line with a mistake, after notes about the images."""
    error = capsys.readouterr().err
    (line,) = (line for line in error.splitlines() if line.startswith("vantage: "))
    assert "Traceback" not in error and error.endswith(f"{line}\n"), error
    return line


@pytest.mark.parametrize(("where", "name", "attack", "words"), ATTACKS, ids=[f"{w}-{n}-{t}" for w, n, _, t in ATTACKS])
def test_no_study_opens_it(
    where: str, name: str, attack: Attack, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(where) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    attack(path)
    for verb in VERBS[where]:
        assert main(verb.split()) == 2, verb
        error = refusal(capsys)
        assert words in error and path.name in error, (verb, error)
    assert untouched() and not Path("page.md").exists()


CELL = {"made": {"part": "Toy"}, "seed": 3}


@pytest.mark.parametrize(
    "change",
    [
        {"seconds": "long"},
        {"seconds": float("nan")},
        {"seconds": None},
        {"trained": {"a": "b"}},
        {"trained": []},
        {"made_on": "../victim"},
        {"numbers": {"knn": 10**400}},
        {"numbers": {"knn": "../victim/new"}},
        {"about": {**CELL, "seed": "../../victim/new"}},
    ],
)
def test_cells_from_elsewhere_hold_numbers_or_are_left(change: dict[str, object], tmp_path: Path) -> None:
    theirs, mine = LabFolder(tmp_path / "theirs"), LabFolder(tmp_path / "mine")
    theirs.keep(CELL, {"knn": 10.0}, 1.0, {"hardware": {}, "versions": {}})
    (path,) = (theirs.folder / "cells").iterdir()
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    assert mine.take_in(theirs.folder) == (0, 1)
    assert theirs.result(CELL) is None


def test_a_cell_is_stored_by_its_digest_whatever_the_stranger_calls_it(tmp_path: Path) -> None:
    theirs, mine = LabFolder(tmp_path / "theirs"), LabFolder(tmp_path / "mine")
    theirs.keep(CELL, {"knn": 10.0}, 1.0, {})
    (path,) = (theirs.folder / "cells").iterdir()
    for name in ("..json", "...json", "%2e%2e%2fnew.json", "\n.json", " " + path.name):
        path.with_name(name).write_bytes(path.read_bytes())
    assert mine.take_in(theirs.folder) == (1, 5)
    assert [each.name for each in (mine.folder / "cells").iterdir()] == [f"{digest(CELL)}.json"]


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        "[]",
        '{"cells": []}',
        '{"cells": {"a": 5}, "seconds": 1, "made_on": []}',
        '{"cells": {"a": {"made": "x", "measures": {"knn": 5}}}, "seconds": 1, "made_on": []}',
        '{"cells": {"a": {"made": "x", "measures": {"knn": {"x": 5}}}}, "seconds": 1, "made_on": []}',
        '{"cells": {"a": {"made": "x", "measures": {"knn": {"0": "5"}}}}, "seconds": 1, "made_on": []}',
        '{"cells": {"a": {"made": "x", "measures": {"knn": {"0": 1e999}}}}, "seconds": 1, "made_on": []}',
        '{"cells": {}, "seconds": "x", "made_on": []}',
        '{"cells": {}, "seconds": 1}',
    ],
)
def test_numbers_that_are_none_are_refused(content: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("numbers").mkdir()
    Path(f"numbers/{ENTRY}.json").write_text(content)
    for verb in NUMBERS[:2]:
        assert main(verb.split()) == 2, verb
        assert "holds no results of the lab" in refusal(capsys), verb


FORGED = (
    {"accuracy": {"knn": "../victim/new"}},
    {"accuracy": {"knn": []}},
    {"accuracy": {}},
    {"accuracy": {"other": 5.0}},
    {"branches": [5]},
    {"i_nce": None},
    {"seed": "0"},
    {"loss": "low"},
    {"label": ["../../victim/new"]},
)


@pytest.mark.slow
def test_rows_of_a_sweep_are_what_they_seem_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    small = "--backbone Convolutions((4,6)) --batch-size 8 --seeds 0 --epochs 1 --num-workers 1"
    sets = "--set accelerator=cpu --set precision=32-true --set information.negatives=5"
    verb = f"{SWEEP[0]} {small} {sets}".split()
    assert main(verb) == 0
    file = Path("sweep/sweep.json")
    record = json.loads(file.read_text())
    (number,) = (number for number, row in enumerate(record["rows"]) if row["encoder"] == "moco_v2")
    capsys.readouterr()

    def rows_with(change: dict[str, object]) -> str:
        rows = [{**row, **change} if at == number else row for at, row in enumerate(record["rows"])]
        return json.dumps({**record, "rows": rows})

    for change in FORGED:
        file.write_text(rows_with(change))
        assert main(verb) == 2, change
        assert "sweep.json is damaged" in refusal(capsys), change
    file.write_text(rows_with({"label": "../../victim/new"}))  # names of folders come from the sweep itself
    assert main(verb) == 0 and untouched()
    assert "victim" not in Path("sweep/jitter.csv").read_text()
    file.write_text(json.dumps({**record, "rows": [row for row in record["rows"] if row["encoder"] != "moco_v2"]}))
    (run,) = Path("sweep/runs").iterdir()
    (run / "metrics.jsonl").unlink()
    capsys.readouterr()
    assert main(verb) == 2
    assert "metrics.jsonl does not end with a row that has loss and seconds" in refusal(capsys)
