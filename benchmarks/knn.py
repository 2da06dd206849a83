"""Weighted kNN, time and peak memory: 10,000 queries in a bank of 50,000 x 512, k = 200, 10 and 1,000 classes.

    python benchmarks/knn.py [--threads 2] [--rounds 3] [--queries 10000]

Compared with lightly's `knn_predict` (in batches of 512, as its benchmark runs it), if lightly is installed. Features
are random clusters of unit length, which do not affect the speed. Memory is the peak that the lookup adds in a fresh
process that holds the data.
"""

import argparse
import importlib.util
import statistics
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import torch
from timing import interleave, speedup, write_results
from torch import Tensor

from vantage.evaluate import KNN

BANK, WIDTH, K, TEMPERATURE = 50_000, 512, 200, 0.1
Lookup = Callable[[Tensor, Tensor, Tensor, int], Tensor]


def data(queries: int, classes: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Bank, its labels, queries, their labels."""
    generator = torch.Generator().manual_seed(0)
    center = torch.randn(classes, WIDTH, generator=generator) / 4
    label = torch.randint(0, classes, (BANK,), generator=generator)
    query_label = torch.randint(0, classes, (queries,), generator=generator)
    bank, query = (torch.randn(rows, WIDTH, generator=generator) for rows in (BANK, queries))
    for vectors, numbers in ((bank, label), (query, query_label)):
        # Piece by piece and in place, so that making the data leaves no peak that would hide a lookup's.
        for part, number in zip(vectors.split(500), numbers.split(500), strict=True):
            part.add_(center[number])
            part.div_(part.norm(dim=1, keepdim=True))
    return bank, label, query, query_label


def vantage_knn(bank: Tensor, label: Tensor, query: Tensor, classes: int) -> Tensor:
    """The first guesses of `vantage.evaluate.KNN`."""
    return KNN(K, TEMPERATURE).predict(bank, label, query, classes)[:, 0]


def lightly_module() -> ModuleType | None:
    """lightly's kNN without the rest of the package, which imports Lightning; `None` if lightly is not installed."""
    package = importlib.util.find_spec("lightly")
    if package is None or package.origin is None:
        return None
    spec = importlib.util.spec_from_file_location("knn", Path(package.origin).parent / "utils/benchmarking/knn.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lightly_knn(bank: Tensor, label: Tensor, query: Tensor, classes: int) -> Tensor:
    """The first guesses of lightly."""
    module = lightly_module()
    assert module is not None
    columns = bank.t().contiguous()
    parts = [module.knn_predict(part, columns, label, classes, K, TEMPERATURE)[:, 0] for part in query.split(512)]
    return torch.cat(parts)


LOOKUPS: dict[str, Lookup] = {"vantage": vantage_knn, "lightly": lightly_knn}


def resident(line: str) -> float:
    """MiB of resident memory of this process: now (VmRSS) or its peak so far (VmHWM); Linux only."""
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(row for row in status if row.startswith(line)).split()[1]) / 1024


def look_up_once(name: str, classes: int, queries: int) -> None:
    """One lookup in this process; print what its peak adds to the data and the libraries."""
    bank, label, query, _ = data(queries, classes)
    LOOKUPS[name](bank[:500], label[:500], query[:10], classes)  # starts the libraries
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the memory that is resident now
    memory_before = resident("VmRSS")
    LOOKUPS[name](bank, label, query, classes)
    print(resident("VmHWM") - memory_before)


def extra_memory(name: str, classes: int, queries: int, threads: int) -> float:
    """MiB that one lookup adds at its peak, in a fresh process."""
    # The peak that the system reports for a child is no use: it starts at the parent's size.
    words = ["--once", name, "--classes", str(classes), "--queries", str(queries), "--threads", str(threads)]
    process = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, check=True)
    return float(process.stdout.split()[-1])


def main() -> None:
    """Time and compare the lookups, and write results/knn.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--once", choices=sorted(LOOKUPS), help="run one case only, to measure its memory")
    parser.add_argument("--classes", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.once:
        look_up_once(options.once, options.classes, options.queries)
        return
    names = ["vantage"] + (["lightly"] if lightly_module() is not None else [])
    rows = []
    for classes in (10, 1000):
        bank, label, query, query_label = data(options.queries, classes)
        guesses = {name: LOOKUPS[name](bank, label, query, classes) for name in names}
        cases = {name: partial(LOOKUPS[name], bank, label, query, classes) for name in names}
        seconds = interleave(cases, options.rounds)
        for name in names:
            row = {
                "case": f"{name}, {classes} classes",
                "queries": options.queries,
                "seconds": round(statistics.median(seconds[name]), 3),
                "vantage_is_faster_by": round(speedup(seconds, "vantage", name), 2),
                "extra_memory_mib": round(extra_memory(name, classes, options.queries, options.threads)),
                "same_guesses_as_vantage": float((guesses[name] == guesses["vantage"]).double().mean()),
                "accuracy": round(100 * float((guesses[name] == query_label).double().mean()), 2),
            }
            rows.append(row)
            print(row, flush=True)
    print(write_results("knn", rows))


if __name__ == "__main__":
    main()
