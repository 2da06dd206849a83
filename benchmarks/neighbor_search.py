"""The ten nearest neighbors of some of many random features: our exact search by torch and by faiss, and faiss alone.

    python benchmarks/neighbor_search.py [--queries 500 2000] [--threads 1]

Each case runs in its own process. Seconds are processor time over all threads, which other programs affect less than
wall time; memory is the peak that the search adds to the features. `torch` and `faiss` are the two ways of
`vantage.curation.neighbors`, in blocks of bounded size; `faiss index` is IndexFlatIP, which copies the features;
`faiss knn` searches them in place, without normalizing them. Needs the extra `faiss`.
"""

import argparse
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import faiss
import torch
from knn import resident
from timing import write_results
from torch import Tensor

from vantage.curation.faiss_search import nearest_by_faiss
from vantage.measures import nearest

SIZES = ((100_000, 128), (100_000, 512), (1_000_000, 128), (1_000_000, 512))
WAYS = ("torch", "faiss", "faiss index", "faiss knn")
NEIGHBORS = 10


def main() -> None:
    """Run every case in turn, and write results/neighbor_search.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--queries", type=int, nargs="+", default=[500, 2000], help="numbers of images whose neighbors are searched"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--once", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        way, *numbers = options.once
        search_once(way, *map(int, numbers))
        return
    rows = []
    for (size, width), threads, queries, way in product(SIZES, options.threads, options.queries, WAYS):
        words = [way, *map(str, (size, width, threads, queries))]
        process = subprocess.run(
            [sys.executable, __file__, "--once", *words], capture_output=True, text=True, check=True
        )
        seconds, memory = map(float, process.stdout.split())
        row = {"features": f"{size:,} × {width}", "threads": threads, "way": way, "queries": queries}
        rows.append(row | {"processor seconds": round(seconds, 2), "extra memory, MiB": round(memory)})
        print(rows[-1], flush=True)
        write_results("neighbor_search", rows)


def search_once(way: str, size: int, width: int, threads: int, queries: int) -> None:
    """Print processor seconds and MiB of a search."""
    torch.set_num_threads(threads)
    vector = torch.empty(size, width)
    generator = torch.Generator().manual_seed(0)
    for part in vector.split(4096):  # in place, so that making the features leaves no peak
        part.normal_(generator=generator)
        part.div_(part.norm(dim=1, keepdim=True))
    numbers = torch.arange(0, size, size // queries)[:queries]
    search(way, vector[:5000], torch.arange(10), threads)  # starts the libraries
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak to the memory that is resident now
    memory_before, start = resident("VmRSS"), time.process_time()
    search(way, vector, numbers, threads)
    print(time.process_time() - start, resident("VmHWM") - memory_before)


def search(way: str, vector: Tensor, numbers: Tensor, threads: int) -> Tensor:
    """Numbers of the nearest; the image itself is among them."""
    if way in ("torch", "faiss"):
        found = {"torch": nearest, "faiss": nearest_by_faiss}[way](vector, vector[numbers], NEIGHBORS + 1)
        return torch.cat([number for _, number in found])
    faiss.omp_set_num_threads(threads)
    bank, query = vector.numpy(), vector[numbers].numpy()
    if way == "faiss knn":
        return torch.from_numpy(faiss.knn(query, bank, NEIGHBORS + 1, metric=faiss.METRIC_INNER_PRODUCT)[1])
    index = faiss.IndexFlatIP(vector.shape[1])
    index.add(bank)
    return torch.from_numpy(index.search(query, NEIGHBORS + 1)[1])


if __name__ == "__main__":
    main()
