"""Count how the code of a checkout is structured: `python benchmarks/structure.py [CHECKOUT] [--static] [--json FILE]`.

The tests' time is taken from a run of them: `python -m pytest --junitxml tests.xml`, then `--tests tests.xml` here.

A room is a module or a package directly in `src/vantage`. Imports under `if TYPE_CHECKING` do not count; those inside
functions are counted separately. Levels are the rooms on the longest chain of imports; a cycle of rooms counts as one.
Functions are measured from `def` to their last line. The frames from `main` to the loss are Vantage's frames on the
stack at the first call into `estimators` under the learner, in a run of the command line on 64 small images. The run is
--quiet, since otherwise a trial of the speed comes first.
"""

import argparse
import ast
import datetime
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LONG_FUNCTION, LONG_FILE = 40, 250
HELP_OF = ("pretrain moco_v2", "evaluate knn")
"""Commands whose --help is measured in addition to that of each verb."""

_PROBE = """
import os, sys
import numpy as np
import vantage
from vantage.cli import main
package = os.path.dirname(vantage.__file__) + os.sep
np.savez("images.npz", images=np.random.default_rng(0).integers(0, 256, (64, 16, 16, 3), dtype=np.uint8))
def frames(frame):
    while frame is not None:
        if frame.f_code.co_filename.startswith(package):
            yield frame
        frame = frame.f_back
def look(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(package + "estimators"):
        stack = list(frames(frame))
        if any(type(f.f_locals.get("self")).__name__ == "Learner" for f in stack):
            sys.setprofile(None)
            for f in reversed(stack):
                print("FRAME", os.path.relpath(f.f_code.co_filename, package), f.f_code.co_qualname)
            sys.stdout.flush()
            os._exit(0)
sys.setprofile(look)
main(["--quiet", "pretrain", "moco_v2", "--data", "images.npz", "--out", "run"])
"""


def imports_of(tree: ast.AST, package: tuple[str, ...], lazy: bool = False) -> Iterator[tuple[str, bool]]:
    """Dotted names that a file imports, and whether inside a function."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            base = ".".join(part for part in (above, node.module) if part)
            yield from ((f"{base}.{alias.name}", lazy) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                yield from imports_of(ast.Module([child], []), package, lazy)
        else:
            inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from imports_of(node, package, lazy or inside)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components, each before those that import it (Tarjan)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    parts: list[list[str]] = []

    def visit(node: str) -> None:
        number[node] = low[node] = len(number)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in number:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == number[node]:
            start = stack.index(node)
            parts.append(sorted(stack[start:]))
            del stack[start:]

    for node in sorted(graph):
        if node not in number:
            visit(node)
    return parts


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """The level of each room, the lowest being 1."""
    level: dict[str, int] = {}
    for part in circles(graph):
        below = [level[other] for node in part for other in graph[node] if other not in part]
        level |= dict.fromkeys(part, 1 + max(below, default=0))
    return level


def static(package: Path) -> dict[str, Any]:
    """Counts that need only the files."""
    files = {path.relative_to(package): path.read_text() for path in sorted(package.rglob("*.py"))}
    rooms = {path.parts[0].removesuffix(".py") for path in files} - {"__init__", "__main__"}
    folders: dict[str, Counter[str]] = defaultdict(Counter)
    eager: dict[str, set[str]] = {room: set() for room in rooms}
    lazy: dict[str, set[str]] = {room: set() for room in rooms}
    functions, long_files = [], []
    for path, text in files.items():
        lines, tree = text.count("\n"), ast.parse(text)
        folders[path.parent.as_posix()].update(files=1, lines=lines)
        if lines > LONG_FILE:
            long_files.append({"file": path.as_posix(), "lines": lines})
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONG_FUNCTION:
                    functions.append({"function": f"{path.as_posix()}:{node.name}", "lines": length})
        room = path.parts[0].removesuffix(".py")
        for name, inside in imports_of(tree, ("vantage", *path.parent.parts)):
            parts = name.split(".")
            if room in rooms and parts[0] == "vantage" and len(parts) > 1 and parts[1] in rooms - {room}:
                (lazy if inside else eager)[room].add(parts[1])
    level = levels(eager)
    both = {room: eager[room] | lazy[room] for room in rooms}
    return {
        "lines": sum(folder["lines"] for folder in folders.values()),
        "files": len(files),
        "folders": {name: dict(count) for name, count in sorted(folders.items())},
        "rooms": len(rooms),
        "levels": max(level.values()),
        "level_of": dict(sorted(level.items(), key=lambda item: (item[1], item[0]))),
        "levels_with_imports_in_functions": max(levels(both).values()),
        "circles": [part for part in circles(eager) if len(part) > 1],
        "circles_with_imports_in_functions": [part for part in circles(both) if len(part) > 1],
        "imports_in_functions_only": {room: sorted(lazy[room] - eager[room]) for room in sorted(rooms) if lazy[room]},
        "loose_modules": sorted(room for room in rooms if Path(f"{room}.py") in files),
        "functions_above_40_lines": sorted(functions, key=lambda row: -row["lines"]),
        "files_above_250_lines": sorted(long_files, key=lambda row: -row["lines"]),
        "command_line_lines": sum(text.count("\n") for path, text in files.items() if path.parts[0] == "cli"),
    }


def running(package: Path) -> dict[str, Any]:
    """Counts that need the code to run: the frames down to the loss, and the help."""
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {
            "PYTHONPATH": str(package.parent),
            "COLUMNS": "120",
            "VANTAGE_CACHE": f"{folder}/cache",
        }

        def run(*words: str) -> tuple[list[str], float]:
            start = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
            process = subprocess.run(
                [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
            )
            seconds = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - start
            return process.stdout.splitlines(), round(seconds, 2)

        program = ("-m", "vantage" if (package / "__main__.py").exists() else "vantage.cli")
        first, _ = run(*program, "--help")
        verbs = [match[1] for line in first if (match := re.match(r"  ([a-z][a-z-]*) +\S", line))]
        helps = ["", *(verb for verb in dict.fromkeys(verbs) if verb != "vantage"), *HELP_OF]
        outputs = {f"vantage {words}".strip(): run(*program, *words.split(), "--help") for words in helps}
        frames = [line.removeprefix("FRAME ") for line in run("-c", _PROBE)[0] if line.startswith("FRAME ")]
    return {
        "frames_from_main_to_loss": len(frames),
        "frames": frames,
        "help_lines": {words: len(lines) for words, (lines, _) in outputs.items()},
        "help_processor_seconds": {words: seconds for words, (_, seconds) in outputs.items()},
    }


def tests(report: Path) -> dict[str, Any]:
    """How many tests pytest ran and how long they took, from its JUnit report: by the clock, and as a sum over tests,
    which does not depend on the number of processes."""
    suites = list(ElementTree.parse(report).getroot().iter("testsuite"))
    cases = [case for suite in suites for case in suite.iter("testcase")]
    problems = sum(int(suite.get(kind, "0")) for suite in suites for kind in ("failures", "errors"))
    return {
        "tests": len(cases),
        "tests_with_problems": problems,
        "tests_seconds": round(sum(float(suite.get("time", "0")) for suite in suites)),
        "tests_seconds_added_up": round(sum(float(case.get("time", "0")) for case in cases)),
    }


def text_of(value: Any) -> str:
    """A count, or a list of them, in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {text_of(inside)}" for key, inside in value.items())
    if isinstance(value, list):
        return f"{len(value)} ({', '.join(text_of(inside) for inside in value)})" if value else "none"
    return str(value)


def main() -> None:
    """Count and print; write the counts if --json names a file."""
    parser = argparse.ArgumentParser(description="How the code of a checkout is built")
    parser.add_argument("checkout", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--static", action="store_true", help="run nothing")
    parser.add_argument("--tests", type=Path, help="JUnit report of the tests: python -m pytest --junitxml FILE")
    parser.add_argument("--json", type=Path, help="write the counts here too")
    options = parser.parse_args()
    package = options.checkout.resolve() / "src" / "vantage"
    git = ["git", "-C", str(package), "log", "-1", "--format=%H"]
    commit = subprocess.run(git, capture_output=True, text=True).stdout.strip()
    counts = {"command": "python benchmarks/structure.py", "commit": commit, "date": str(datetime.date.today())}
    counts |= static(package) | ({} if options.static else running(package))
    counts |= tests(options.tests) if options.tests else {}
    print("\n".join(f"{name.replace('_', ' ')}: {text_of(value)}" for name, value in counts.items()))
    if options.json:
        options.json.write_text(json.dumps(counts, indent=1) + "\n")


if __name__ == "__main__":
    main()
