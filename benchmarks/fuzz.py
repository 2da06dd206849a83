"""Read damaged files with every reader, and count the outcomes by kind of file.

    python benchmarks/fuzz.py [--count 10000] [--first 0] [--only npz tar]

`tests/fuzzing.py` has the readers and the ways to damage a file. Anything but a one-line `UserError` within 5 seconds
and 400 MiB is a failure. The address space is limited, so a header with false sizes fails here.
"""

import argparse
import collections
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from fuzzing import targets, try_one
from timing import RESULTS, write_results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="files of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", nargs="*", help="kinds of file; if omitted, all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    before = json.loads((RESULTS / "fuzz.json").read_text())["rows"] if (RESULTS / "fuzz.json").exists() else []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        every = targets(folder)
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + (2 << 30), resource.RLIM_INFINITY))
        for kind in options.only or every:
            started, outcomes = time.monotonic(), collections.Counter()
            failures: dict[str, int] = {}
            for seed in range(options.first, options.first + options.count):
                outcome = try_one(kind, every[kind], seed, folder, folder / "cache")
                outcomes[outcome if outcome in ("read", "refused") else "failed"] += 1
                if outcome not in ("read", "refused"):
                    if outcome not in failures:
                        print(kind, seed, outcome, flush=True)
                    failures.setdefault(outcome, seed)
            (folder / every[kind].file).write_bytes(every[kind].content)
            rows.append(
                {
                    "file": kind,
                    "damaged": options.count,
                    "refused": outcomes["refused"],
                    "read": outcomes["read"],
                    "failed": outcomes["failed"],
                    "seconds": round(time.monotonic() - started, 1),
                    "failures": {str(seed): words for words, seed in failures.items()},
                }
            )
            print(rows[-1], flush=True)
            write_results("fuzz", [*(row for row in before if row["file"] != kind), rows[-1]])
            before = json.loads((RESULTS / "fuzz.json").read_text())["rows"]


if __name__ == "__main__":
    main()
