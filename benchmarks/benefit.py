"""Does pretraining help on real images? The verdict of `vantage benefit` on a run, by number of labels.

    python benchmarks/benefit.py flowers5 RUN --data IMAGES --test IMAGES --work /tmp/benefit [OPTIONS of the verb]

RUN was trained by `vantage pretrain --minutes` on the training images; `race.py` writes the runs and images used here.
Every classifier is kept in the work folder, so a stopped call can be continued. Each row is one way to use the labels
at one number of labels, over all seeds; one row holds the verdict. Rows of other sets, and of other numbers of labels,
stay in the results file: many labels may be tried with fewer seeds (`--shares`, `--seeds`).
"""

import argparse
import csv
import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from timing import merge_rows, write_results

from vantage.cli import main as vantage_command


def main() -> None:
    """Compare, and write results/benefit.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="of the set, such as flowers5")
    parser.add_argument("run", help="folder of the run")
    parser.add_argument("--data", required=True, help="labeled training images")
    parser.add_argument("--test", required=True, help="labeled test images")
    parser.add_argument("--work", type=Path, required=True, help="folder for finished classifiers")
    options, verb_options = parser.parse_known_args()
    folder = options.work / options.name
    images = ["--data", options.data, "--test", options.test, "--out", str(folder)]
    assert vantage_command(["benefit", options.run, *images, *verb_options]) == 0
    print(write_results("benefit", merge_rows("benefit", "part", rows_of(options.name, folder))))


def rows_of(name: str, folder: Path) -> list[dict[str, Any]]:
    """A row for each way at each number of labels, and one for the verdict."""
    with open(folder / "benefit.csv", newline="") as file:
        cells = list(csv.DictReader(file))
    about = json.loads((folder / "benefit.json").read_text())
    verdict = (folder / "benefit.md").read_text().split("\n\n")[:2]
    pairs = dict.fromkeys((int(cell["labels"]), cell["way"]) for cell in cells)
    whole = {"part": f"{name}, {min(pairs)[0]:,} to {max(pairs)[0]:,} labels", "set": name}
    rows = [whole | {"verdict": [part.strip("*") for part in verdict], "budget": about["budget"]}]
    for labels, way in pairs:
        group = [cell for cell in cells if (int(cell["labels"]), cell["way"]) == (labels, way)]
        top1, seconds = ([float(cell[column]) for cell in group] for column in ("top-1 (%)", "seconds"))
        numbers = {"top-1": round(fmean(top1), 2), "deviation": round(stdev(top1), 2), "seeds": len(group)}
        rates = sorted(float(cell["learning_rate"]) for cell in group if cell["learning_rate"])
        part = {"part": f"{name}, {labels:,} labels", "set": name}
        row = part | {"labels": labels, "way": way, **numbers, "seconds": round(fmean(seconds), 1)}
        rows.append(row | ({"learning rates": rates} if rates else {}))
    return rows


if __name__ == "__main__":
    main()
