"""How often a training step makes the host wait for the device: every recipe, scaled down, without a GPU.

    python benchmarks/host_waits.py [--recipes moco_v2 infomin] [--places] [--json FILE] [--before FILE]

A step is `Session.step`: views of whole images on the device or of crops made by workers, both passes, the optimizer
and all stores. It runs on a simulated GPU; `tests/support/pretend_gpu.py` defines what counts as a wait, by torch's own
tags. Two epochs of six steps are run and the second is counted: by then there are clusters, and everything that is read
once per run has been read. Steps in which k-means makes new clusters, or splits one to replace one that became too
small, are counted like all others. `--json` writes the rows; `--before` adds columns with the rows of an earlier
version of the code.
"""

import argparse
import collections
import json
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from pretend_gpu import Pretend, Wait
from stepping import SIZE, Stepping, Views, small
from timing import write_results

from vantage import allowing
from vantage.recipes import RECIPES, VARIANTS
from vantage.training.run import Run

IMAGES = 48


def steps(run: Run, views: Views) -> list[list[Wait]]:
    """The waits of each step of a second epoch."""
    with Pretend() as mode:
        stepping = Stepping(run, IMAGES, views)
        stepping.epoch(mode)
        return [waits for _, waits in stepping.epoch(mode)]


def row(name: str, run: Run) -> dict[str, Any]:
    """The row of a recipe."""
    by_step = [waits for views in (Views.RESIDENT, Views.STREAMED) for waits in steps(run, views)]
    most = max(by_step, key=len)
    return {
        "recipe": name,
        "waits of a step": _range([len(waits) for waits in by_step]),
        "at most": len(most),
        "places": dict(sorted(collections.Counter(f"{wait.place} {wait.what}" for wait in most).items())),
    }


def _range(counts: list[int]) -> str:
    least, most = min(counts), max(counts)
    return f"{least}" if least == most else f"{least} to {most}"


def main() -> None:
    """Count and print; write the rows if --json names a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="+", choices=[recipe.__name__ for recipe in (*RECIPES, *VARIANTS)])
    parser.add_argument("--places", action="store_true", help="print where a step waits")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--before", type=Path, help="a file of rows written by --json with the code before a change")
    options = parser.parse_args()
    rows_before = json.loads(options.before.read_text())["rows"] if options.before else []
    earlier_rows = {entry["recipe"]: entry for entry in rows_before}
    rows = []
    for recipe in (*RECIPES, *VARIANTS):
        name = recipe.__name__
        if options.recipes and name not in options.recipes:
            continue
        with allowing("tiny"):
            entry = row(name, small(recipe(SIZE), IMAGES))
        if name in earlier_rows:
            entry |= {f"before: {key}": earlier_rows[name][key] for key in ("waits of a step", "places")}
        rows.append(entry)
        was = f"   before {entry['before: waits of a step']}" if name in earlier_rows else ""
        print(f"{name:30} {entry['waits of a step']:>8}{was}", flush=True)
        for place, count in entry["places"].items() if options.places else ():
            print(f"    {count:3}  {place}")
    if options.json:
        write_results(options.json.stem, rows).replace(options.json)
        print("written:", options.json)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
