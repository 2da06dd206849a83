"""The scripts start, and files of results keep what one call made beside what another made."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
TIMING = BENCHMARKS / "timing.py"
LOAD_ALL = """
import importlib, pathlib, sys
own = {path.stem for path in pathlib.Path().glob("*.py")}
for name in sorted(own):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in own or (error.name or "").startswith("vantage"):
            raise
"""
"""Imports every script; a peer that is not installed is no failure."""


@pytest.mark.slow
def test_every_script_loads() -> None:
    if not TIMING.exists():
        pytest.skip("the benchmarks are not part of an installation")
    command = [sys.executable, "-c", LOAD_ALL]
    done = subprocess.run(command, cwd=BENCHMARKS, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def timing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module of the benchmarks, which writes into a folder of its own."""
    if not TIMING.exists():
        pytest.skip("the benchmarks are not part of an installation")
    spec = importlib.util.spec_from_file_location("timing_of_benchmarks", TIMING)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "RESULTS", tmp_path)
    monkeypatch.setattr(module, "_commit", lambda: "c0ffee")
    return module


def test_each_set_keeps_the_command_that_made_it(timing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("flowers", 1), ("digits", 2), ("flowers", 3)):
        monkeypatch.setattr(sys, "argv", ["find.py", "--sets", name, "--seed", str(number)])
        timing.write_results("find", timing.merge_rows("find", "set", [{"set": name, "found": number}]))
    rows = json.loads((timing.RESULTS / "find.json").read_text())["rows"]
    assert [(row["set"], row["found"], row["commit"]) for row in rows] == [
        ("digits", 2, "c0ffee"),
        ("flowers", 3, "c0ffee"),
    ]
    assert [row["command"].partition(" ")[2] for row in rows] == [
        "find.py --sets digits --seed 2",
        "find.py --sets flowers --seed 3",
    ]
