"""Kill and resume every recipe and every variant at five moments, on several processes: it must continue bit for bit.

    python benchmarks/resume.py [--recipes moco_v2 interclr] [--processes 1 2]
    python benchmarks/resume.py --evaluations

The moments are in `tests/support/kill_moments.py`, what is compared in `tests/support/kills.py`. How an epoch is kept
does not depend on the recipe, so one recipe is killed at those moments. On more than two processes one run is killed at
all moments in turn. Each cell is written when it is done, and cells that are already in the file are not repeated.

With `--evaluations`, evaluations are killed and repeated instead (`tests/support/killed_evaluations.py`), and
`results/killed_evaluations.json` is written.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import killed_evaluations  # noqa: E402
import small_runs  # noqa: E402
from kill_moments import KEEPING  # noqa: E402
from kills import cell, chain, moments_of  # noqa: E402
from timing import RESULTS, write_results  # noqa: E402

from vantage.recipes import RECIPES, VARIANTS  # noqa: E402

KEPT_OF = "moco_v2"
"""The recipe that is killed while an epoch is kept."""


def main() -> None:
    """Compute the missing cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="+", default=[recipe.__name__ for recipe in (*RECIPES, *VARIANTS)])
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--evaluations", action="store_true", help="kill evaluations instead of runs")
    options = parser.parse_args()
    if options.evaluations:
        write_results("killed_evaluations", kill_evaluations(options.processes))
        return
    results = RESULTS / "resume.json"
    cells = json.loads(results.read_text())["rows"] if results.exists() else []
    finished = {(one["recipe"], one["moment"], one["processes"]) for one in cells}
    for processes in options.processes:
        for recipe in options.recipes:
            with tempfile.TemporaryDirectory() as folder:
                os.environ["VANTAGE_CACHE"] = f"{folder}/cache"
                images = small_runs.write_images(Path(folder) / "images.npz")
                kept = KEEPING if recipe == KEPT_OF and processes <= 2 else ()
                missing = [each for each in (*moments_of(recipe), *kept) if (recipe, each, processes) not in finished]
                if missing and processes > 2:
                    rows = chain(recipe, processes, images, Path(folder))
                    cells += [row for row in rows if row["moment"] in missing]
                    write_results("resume", cells)
                for moment in missing if processes <= 2 else ():
                    cells.append(cell(recipe, moment, processes, images, Path(folder)))
                    write_results("resume", cells)
                    print(cells[-1], flush=True)


def kill_evaluations(counts: list[int]) -> list[dict[str, Any]]:
    """The cells of all protocols."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        shared = Path(name) / "shared"
        shared.mkdir()
        killed_evaluations.write_run(shared)
        for count in counts:
            for protocol in killed_evaluations.PROTOCOLS:
                folder = Path(name) / f"{protocol}-{count}"
                folder.mkdir()
                rows.append(killed_evaluations.cell(protocol, count, shared, folder))
                print(rows[-1], flush=True)
    return rows


if __name__ == "__main__":
    main()
