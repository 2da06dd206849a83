"""Photographs of several sizes: decoded anew in every epoch, or once, with a square of each kept in memory.

    python benchmarks/squares.py --data ../shared/data/flowers5-128.tar.gz
    python benchmarks/squares.py --sides 2900 3100 --images 200 --results squares_12mp

The flowers of 128 pixels are scaled to short sides of 600 to 1,800 pixels (or `--sides`) and written as JPEG files.
A plan then chooses its network, and its steps are timed in both ways, in turn: `data.resident_side` as planned, and 0.
The time to decode an image is measured apart.
"""

import argparse
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from timing import write_results

from vantage.data import open_source
from vantage.planning import plan
from vantage.planning.speed import measure_speed
from vantage.training.images import training_part


def write_photographs(data: str, folder: Path, count: int, least: int, most: int) -> None:
    """Photographs of `count` different sizes; their short sides have `least` to `most` pixels."""
    small = open_source(data)
    for number in range(count):
        image = Image.fromarray(small.image(number * (len(small) // count)).permute(1, 2, 0).numpy())
        side = least + (most - least) * number // count
        image.resize((side, side * 4 // 3), Image.Resampling.BICUBIC).save(folder / f"{number:05}.jpg", quality=90)


def main() -> None:
    """Time both ways, and write results/squares.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="../shared/data/flowers5-128.tar.gz")
    parser.add_argument("--images", type=int, default=600)
    parser.add_argument("--sides", type=int, nargs=2, default=(600, 1_800))
    parser.add_argument("--results", default="squares")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        write_photographs(options.data, Path(name), options.images, *options.sides)
        source = open_source(name)
        run = plan(source, options.minutes)
        assert run.data.resident_side
        ways = {"kept as squares": run, "streamed": replace(run, data=replace(run.data, resident_side=0))}
        rates: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(options.rounds):
            for way, each in ways.items():
                speed = measure_speed(each, training_part(source, each.data), 5.0)
                rates[way].append(run.batch_size / speed.step)
        start = time.process_time()
        for number in range(0, options.images, options.images // 100):
            source.image(number)
        decoding = (time.process_time() - start) / 100
    ratios = [kept / streamed for kept, streamed in zip(*rates.values(), strict=True)]
    row: dict[str, Any] = {
        "images": options.images,
        "short sides": options.sides,
        "network": repr(run.encoders),
        "side of a square": run.data.resident_side,
    }
    row |= {f"images/s, {way}": round(statistics.median(each), 1) for way, each in rates.items()}
    row |= {"times as fast": round(statistics.median(ratios), 2), "ratios": [round(ratio, 2) for ratio in ratios]}
    row |= {"ms to decode an image": round(1_000 * decoding, 2), "threads": torch.get_num_threads()}
    print(row)
    write_results(options.results, [row])


if __name__ == "__main__":
    main()
