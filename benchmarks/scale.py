"""Time and memory for a huge number of simulated images: the order of an epoch, and the index of tar shards.

    python benchmarks/scale.py

Up to twenty windows of the order of an epoch are computed for 10⁶, 10⁸ and 10⁹ images in shards of 10,000. The index is
that of one real shard of 10,000 samples (image and label), which is linked under 10,000 names and opened as a set of
10,000 shards, 10⁸ images. Its cached index files are linked too, so the headers of the other shards are not read. The
second opening reads the single file that holds the results of the first. Each row is measured in its own process;
memory is the process's peak minus that of Python and torch.
"""

import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from timing import write_results

from vantage.data.order import WINDOW, EpochOrder
from vantage.data.sources.shards import Shards
from vantage.data.sources.shards.index import cached_index, index_files, make_index, state_of

SHARD, SHARDS, BYTES = 10_000, 10_000, 4096


def order(images: int) -> dict[str, Any]:
    """The first windows of an epoch, in steps as in training, and its last batch, as for a resumed run."""
    starts, step, windows = torch.arange(0, images + 1, SHARD), 4096, min(20, -(-images // WINDOW))
    clock, memory_before = time.perf_counter(), _peak()
    epoch = EpochOrder(starts, 0, 0)
    epoch.part(0, step)
    first = time.perf_counter() - clock
    for start in range(0, min(images, windows * WINDOW), step):
        epoch.part(start, min(start + step, images))
    seconds = time.perf_counter() - clock
    clock = time.perf_counter()
    EpochOrder(starts, 0, 0).part(images - step, images)
    return {
        "what": "order of an epoch",
        "images": images,
        "seconds to the first batch": round(first, 2),
        "seconds to the last batch, resumed": round(time.perf_counter() - clock, 2),
        "microseconds an image": round(1e6 * seconds / min(images, windows * WINDOW), 2),
        "MiB": round(_peak() - memory_before),
    }


def index(folder: Path) -> list[dict[str, Any]]:
    """Index one shard; then open 10,000 shards with such an index, and read from random places."""
    first = folder / "train-000000.tar"
    with tarfile.open(first, "w", format=tarfile.USTAR_FORMAT) as tar:
        for number in range(SHARD):
            for ending, content in (("jpg", bytes(BYTES)), ("cls", b"17")):
                member = tarfile.TarInfo(f"{number:08d}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    clock = time.process_time()
    make_index(str(first), state_of(str(first)))
    seconds = time.process_time() - clock
    cache, paths = folder / "cache", [folder / f"train-{number:06d}.tar" for number in range(SHARDS)]
    cached_index(str(first), state_of(str(first)), cache)
    files = index_files(str(first), state_of(str(first)), cache)
    row = {"what": "index of a shard", "images": SHARD, "samples a second and core": round(SHARD / seconds)}
    for path in paths[1:]:
        os.link(first, path)
        for file, link in zip(files, index_files(str(path), state_of(str(path)), cache), strict=True):
            os.link(file, link)
    clock, memory_before = time.perf_counter(), _peak()
    Shards([str(path) for path in paths], cache)
    measures = {"seconds to open at first": round(time.perf_counter() - clock, 1)}
    clock = time.perf_counter()
    source = Shards([str(path) for path in paths], cache)
    measures |= {"seconds to open": round(time.perf_counter() - clock, 2)}
    numbers = EpochOrder(source.blocks(), 0, 0).part(0, 20_000).tolist()
    clock = time.perf_counter()
    for number in numbers:
        assert len(source.file_bytes(number)) == BYTES
    seconds_per_image = (time.perf_counter() - clock) / len(numbers)
    measures |= {
        "microseconds to read an image's bytes": round(1e6 * seconds_per_image),
        "MiB": round(_peak() - memory_before),
    }
    size = sum(file.stat().st_size for file in files) / SHARD
    return [row | {"bytes an image in the cache": round(size, 1)}, {"what": "shards", "images": len(source)} | measures]


def _peak() -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps([order(int(sys.argv[1]))] if sys.argv[1] != "index" else index(Path(sys.argv[2]))))
        return
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for words in ([str(10**6)], [str(10**8)], [str(10**9)], ["index", folder]):
            command = [sys.executable, __file__, *words]
            rows += json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            print(rows[-1], flush=True)
            write_results("scale", rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
