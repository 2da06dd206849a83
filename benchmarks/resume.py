"""Kill and resume every recipe and every variant at five moments, on several processes: it must continue bit for bit.

    python benchmarks/resume.py [--recipes moco_v2 interclr] [--processes 1 2]

The moments are in `tests/support/kill_moments.py`, what is compared in `tests/support/kills.py`. How an epoch is kept
does not depend on the recipe, so one recipe is killed at those moments. Each cell is written when it is done, and cells
that are already in the file are not repeated.
"""

import argparse
import json
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import small_runs  # noqa: E402
from kill_moments import KEEPING  # noqa: E402
from kills import cell, moments_of  # noqa: E402
from timing import RESULTS, write_results  # noqa: E402

from vantage.recipes import RECIPES, VARIANTS  # noqa: E402

KEPT_OF = "moco_v2"
"""The recipe that is killed while an epoch is kept."""


def main() -> None:
    """Compute the missing cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="+", default=[recipe.__name__ for recipe in (*RECIPES, *VARIANTS)])
    parser.add_argument("--processes", nargs="+", type=int, default=[1, 2])
    options = parser.parse_args()
    results = RESULTS / "resume.json"
    cells = json.loads(results.read_text())["rows"] if results.exists() else []
    finished = {(one["recipe"], one["moment"], one["processes"]) for one in cells}
    for processes in options.processes:
        for recipe in options.recipes:
            with tempfile.TemporaryDirectory() as folder:
                os.environ["VANTAGE_CACHE"] = f"{folder}/cache"
                images = small_runs.write_images(Path(folder) / "images.npz")
                for moment in (*moments_of(recipe), *(KEEPING if recipe == KEPT_OF else ())):
                    if (recipe, moment, processes) not in finished:
                        cells.append(cell(recipe, moment, processes, images, Path(folder)))
                        write_results("resume", cells)
                        print(cells[-1], flush=True)


if __name__ == "__main__":
    main()
