"""How all benchmarks here are timed and recorded.

Absolute times drift on shared machines, but ratios within a run do not: every round runs each case once in turn, and
results are the median of the per-round ratios. With one thread, the clock is the process's CPU time, else wall time.
Peak memory is measured in a fresh process, because a heap that has already grown hides the memory of the next case.
"""

import contextlib
import ctypes
import datetime
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from vantage.storage.provenance import hardware, versions

RESULTS = Path(__file__).parent / "results"


def interleave(
    cases: Mapping[str, Callable[[], object]],
    rounds: int,
    clock: Callable[[], float] | None = None,
    calls: Mapping[str, int] | None = None,
) -> dict[str, list[float]]:
    """Seconds per call of every case in every round, after a first round that is not counted. If `clock` is omitted, it
    is processor time with one thread, else wall time. For cases too short to be timed once, `calls` is the number of
    successive calls over which the mean is taken."""
    calls = calls or {}
    clock = clock or (time.process_time if torch.get_num_threads() == 1 else time.perf_counter)
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for turn in range(rounds + 1):
        for name, case in cases.items():
            _synchronize()
            repeats = calls.get(name, 1)
            start = clock()
            for _ in range(repeats):
                case()
            _synchronize()
            if turn:
                seconds[name].append((clock() - start) / repeats)
    return seconds


def speedup(seconds: Mapping[str, Sequence[float]], case: str, base: str) -> float:
    """How many times faster `case` is than `base`: the median of the ratios within each round."""
    return statistics.median(slow / fast for slow, fast in zip(seconds[base], seconds[case], strict=True))


def measured_peak(case: Callable[[], object]) -> float:
    """MiB that a case adds at its peak (Linux): the system's high-water mark is reset, then the case runs once.

    Memory that earlier cases left on the heap is returned to the system first; a fresh process is still cleaner.
    """
    with contextlib.suppress(AttributeError, OSError):  # other C libraries have no malloc_trim
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    memory_before = _status("VmRSS")
    case()
    return _status("VmHWM") - memory_before


def fresh(script: str, *words: str, environment: Mapping[str, str] | None = None) -> Any:
    """Run a benchmark with these words in a fresh process, and return the JSON in the last line that it prints."""
    command = [sys.executable, script, *words]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def environment_without(*prefixes: str) -> dict[str, str]:
    """The variables of the environment, without those whose names start with a prefix."""
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}


def _status(field: str) -> float:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(field))


def write_results(name: str, rows: Sequence[Mapping[str, Any]]) -> Path:
    """Write `rows` to results/<name>.json with date, commit, hardware and versions, and return the path."""
    document = {
        "name": name,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "hardware": hardware()
        | {"load_1_minute": round(os.getloadavg()[0], 2), "system": platform.platform(terse=True)},
        "versions": versions(("lightly", "kornia")),
        "command": command(),
        "rows": [dict(row) for row in rows],
    }
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def command() -> str:
    """The command of this call, with paths from the current folder."""
    words = (os.path.relpath(part) if os.path.exists(part) else part for part in sys.argv)
    return " ".join([Path(sys.executable).name, *words])


def merge_rows(name: str, key: str, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """All rows for results/<name>.json, for a benchmark whose call measures only some of them: the rows of the file
    whose `key` is not among the new ones, then the new ones. Each new row records its own command and commit, because
    the heading of the file names only the last call."""
    origin = {"command": command(), "commit": _commit()}
    return [*earlier_rows(name, rows, key), *({**row, **origin} for row in rows)]


def earlier_rows(name: str, rows: Sequence[Mapping[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """The rows of results/<name>.json that have these keys, with values that none of the new rows has."""
    file = RESULTS / f"{name}.json"
    earlier = json.loads(file.read_text())["rows"] if file.exists() else []
    new = {tuple(row[key] for key in keys) for row in rows}
    return [row for row in earlier if set(keys) <= row.keys() and tuple(row[key] for key in keys) not in new]


def _commit() -> str:
    """The commit that is checked out, with "+changes" if files differ from it, or "unknown" outside a checkout."""
    folder = Path(__file__).parent
    try:
        head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=folder, capture_output=True, text=True, check=True)
        status = subprocess.run(
            ["git", "status", "--porcelain", "-uno"], cwd=folder, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.stdout.strip() + ("+changes" if status.stdout.strip() else "")


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def summary(rows: Sequence[Mapping[str, Any]], *keys: str) -> list[dict[str, Any]]:
    """Mean and standard deviation over seeds of every accuracy, of the rows that agree in `keys`."""
    summaries = []
    for group in dict.fromkeys(tuple(row[key] for key in keys) for row in rows):
        members = [row for row in rows if tuple(row[key] for key in keys) == group]
        means: dict[str, Any] = {"summary of": group[0], **dict(zip(keys[1:], group[1:], strict=True))}
        means["seeds"] = len(members)
        for measure in dict.fromkeys(name for row in members for name in row if ": " in name):
            values = [row[measure] for row in members if measure in row]
            # A baseline that is the same network, or the same pixels, for each seed has no spread.
            spread = f" ± {statistics.stdev(values):.2f}" if len(set(values)) > 1 else ""
            means[measure] = f"{statistics.mean(values):.2f}{spread}"
        summaries.append(means)
    return summaries
