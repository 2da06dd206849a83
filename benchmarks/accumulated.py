"""What accumulated parts cost, and how near they are to the whole batch.

    python benchmarks/accumulated.py

Recipes at 32 px with their plan's network for few minutes (ResNet-9 of width 16, BatchNorm in four groups) on 256
images of noise; one thread, processor time, all numbers of parts in turn. A step is that of a run, views included.
Memory is what a second step takes at its peak, in a fresh process. Losses are compared in 64 bits, after three steps.
"""

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from compiled import small
from timing import fresh, interleave, measured_peak, speedup, write_results

import vantage
from vantage.composition.fitting import change_all
from vantage.data import Arrays
from vantage.encoders import Encoder, SplitBatchNorm
from vantage.progress import QuietProgress
from vantage.training.computing.launch import launch
from vantage.training.session import Session
from vantage.training.start.first_rows import begin

RECIPES = ("simclr", "moco_v2", "instance_discrimination")
PARTS = (1, 2, 4)
BATCH, STEPS = 256, 3
IMAGES = Arrays(np.random.default_rng(0).integers(0, 256, (STEPS * BATCH, 32, 32, 3), np.uint8), None, "noise")


def in_parts(name: str, parts: int, precision: str) -> vantage.Run:
    """A recipe in this many parts."""
    run = small(name).rescale(batch_size=BATCH).fit(len(IMAGES))
    return replace(
        run,
        encoders=change_all(run.encoders, Encoder, lambda part: replace(part, normalization=SplitBatchNorm(4))),
        accumulate=parts,
        hardware=replace(run.hardware, accelerator="cpu", devices=1, precision=precision, threads=1),
    )


def stepper(run: vantage.Run) -> Callable[[int], float]:
    """Takes the step of a number, on the same batch each time; returns its loss."""
    fabric, run = launch(run, QuietProgress())
    session = Session(run, fabric, IMAGES)
    begin(session.learner, run, IMAGES, QuietProgress())
    batch = next(iter(session.feed.batches(0, 0)))
    return lambda step: float(session.step(batch, step))


def main() -> None:
    """Time the recipes, and write results/accumulated.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peak", nargs=2, metavar=("RECIPE", "PARTS"), help="only print the memory of one case")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if options.peak:
        step = stepper(in_parts(options.peak[0], int(options.peak[1]), "32-true"))
        step(0)
        print(json.dumps(measured_peak(lambda: step(1))))
        return
    for name in RECIPES:
        steps = {parts: stepper(in_parts(name, parts, "32-true")) for parts in PARTS}
        seconds = interleave({str(n): lambda step=step: step(0) for n, step in steps.items()}, options.rounds)
        exact = {parts: stepper(in_parts(name, parts, "64-true")) for parts in PARTS}
        losses = {parts: [step(number) for number in range(STEPS)][-1] for parts, step in exact.items()}
        for parts in PARTS:
            row = {"recipe": name, "parts": parts, "ms": round(1e3 * statistics.median(seconds[str(parts)]), 1)}
            row["times as long as the whole batch"] = round(1 / speedup(seconds, str(parts), "1"), 2)
            row["peak MiB of a step"] = round(fresh(__file__, "--peak", name, str(parts)))
            row["loss differs by a share of"] = float(f"{abs(losses[parts] / losses[1] - 1):.1e}")
            rows.append(row)
            print(row, flush=True)
    write_results("accumulated", rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
