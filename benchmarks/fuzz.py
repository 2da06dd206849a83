"""Read damaged files with every reader, and count the outcomes by kind of file.

    python benchmarks/fuzz.py [--count 10000] [--first 0] [--only npz tar]

`tests/support/fuzzing.py` has the readers and the ways to damage a file. Anything but a one-line `UserError` within 5
seconds and 400 MiB is a failure. The address space is limited, so a header with false sizes fails here.
"""

import argparse
import collections
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

from fuzz_targets import Target
from fuzzing import memory_folder, targets, try_one
from timing import merge_rows, write_results

SPARE_BYTES = 2 << 30
"""Address space beyond what the process has before it reads the files of a kind."""


def main() -> None:
    """Damage files kind by kind, and write results/fuzz.json after each kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="files of each kind")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--only", nargs="*", help="kinds of file; if omitted, all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=memory_folder()) as name:
        folder = Path(name)
        all_targets = targets(folder)
        for kind in options.only or all_targets:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + SPARE_BYTES
            resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
            row = damage_one_kind(kind, all_targets[kind], range(options.first, options.first + options.count), folder)
            print(row, flush=True)
            write_results("fuzz", merge_rows("fuzz", "file", [row]))


def damage_one_kind(kind: str, target: Target, seeds: range, folder: Path) -> dict[str, Any]:
    """Counts of the outcomes of one kind of file, and the first seed of each failure. Restores the file at the end."""
    start = time.monotonic()
    outcomes: collections.Counter[str] = collections.Counter()
    first_seed: dict[str, int] = {}
    for seed in seeds:
        outcome = try_one(kind, target, seed, folder, folder / "cache")
        if outcome in ("read", "refused"):
            outcomes[outcome] += 1
            continue
        outcomes["failed"] += 1
        if outcome not in first_seed:
            print(kind, seed, outcome, flush=True)
            first_seed[outcome] = seed
    (folder / target.file).write_bytes(target.content)
    return {
        "file": kind,
        "damaged": len(seeds),
        **{outcome: outcomes[outcome] for outcome in ("refused", "read", "failed")},
        "seconds": round(time.monotonic() - start, 1),
        "failures": {str(seed): message for message, seed in first_seed.items()},
    }


if __name__ == "__main__":
    main()
