"""How much faster two processes train than one, each with one thread, in turn.

    python benchmarks/scaling.py [--steps 16x128 16x256 32x256]

MoCo v2 with ResNet-9 at 32 pixels. A step is named by the network's width and the number of images in a batch, which
is 256 in the recipe, and by float32 on a processor without bfloat16. Communication hardly grows with the width, so it
weighs less in a larger network.
Measured in wall time, which needs two idle cores, and in processor time, which a busy machine affects little and which
excludes the time one process waits for the other. The machine's limit is measured too: two processes that train alone
on half the batch each, and share only memory and caches.
"""

import argparse
import json
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch.multiprocessing as spawning
from processes import meet, short_protocols
from timing import merge_rows, write_results

from vantage import processes
from vantage.encoders import ResNet9
from vantage.machine.devices import has_bf16
from vantage.progress import QuietProgress
from vantage.recipes import moco_v2
from vantage.training.computing.launch import launch
from vantage.training.run import Data, Hardware
from vantage.training.session import Session

ROUNDS = 4
IMAGES = 24 * 256
"""Images that a round trains on, at width 16; fewer in larger networks."""
CASES = {"one process": (1, True), "two processes": (2, True), "two that never meet": (2, False)}
"""Processes, and whether they train together."""


def main() -> None:
    """Time steps in turn, and write results/scaling.json after each kind of step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", nargs="+", metavar="WIDTHxBATCH", default=["16x128", "16x256", "32x256"])
    for step in parser.parse_args().steps:
        width, batch_size = map(int, step.split("x"))
        name = step if has_bf16(False) else f"{step}, float32"
        rows = [{"step": name, **row} for row in compare(times_of_cases(width, batch_size))]
        print(json.dumps(rows, indent=1), flush=True)
        write_results("scaling", merge_rows("scaling", "step", rows))


def times_of_cases(width: int, batch_size: int) -> dict[str, list[list[float]]]:
    """Wall and processor seconds of a step, by case and round; those of the slower process count."""
    seconds: dict[str, list[list[float]]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(ROUNDS):
            for name, (count, together) in CASES.items():
                prefix = f"{folder}/{turn}-{name}"
                spawning.spawn(  # pyright: ignore[reportPrivateImportUsage]
                    steps, (count, together, prefix, width, batch_size), nprocs=count
                )
                times = [json.loads(Path(f"{prefix}-{rank}.json").read_text()) for rank in range(count)]
                seconds[name].append([max(pair) for pair in zip(*times, strict=True)])
    return seconds


def compare(seconds: dict[str, list[list[float]]]) -> Iterator[dict[str, Any]]:
    """By each clock, how many times as fast the cases of two processes are as one process."""
    for number, clock in enumerate(("wall", "processor")):
        alone = [times[number] for times in seconds["one process"]]
        for name in list(CASES)[1:]:
            together = [times[number] for times in seconds[name]]
            ratios = [one / two for one, two in zip(alone, together, strict=True)]
            row = {"clock": clock, "case": name, "one_process_s": alone, "two_processes_s": together}
            yield {**row, "times_as_fast": statistics.median(ratios), "load": os.getloadavg()[0]}


def steps(rank: int, count: int, together: bool, prefix: str, width: int, batch_size: int) -> None:
    """Write the median seconds of a training step in this process, in wall time and in processor time."""
    meet(rank if together else 0, count if together else 1, prefix if together else f"{prefix}-{rank}")
    own_batch, devices = (batch_size, count) if together else (batch_size // count, 1)
    length = own_batch * max(5, IMAGES * 16 // (width * batch_size))
    run = replace(moco_v2(32).fit(length), batch_size=own_batch, data=Data())
    role: Any = run.encoders
    encoder = replace(role.encoder, backbone=ResNet9(width))
    run = replace(run, encoders=replace(role, encoder=encoder))
    fabric, run = launch(replace(run, hardware=Hardware("cpu", devices, precision="32-true")), QuietProgress())
    session = Session(run, fabric, short_protocols.noise(length, 32))
    seconds = []
    for step, batch in enumerate(session.feed.batches(0, 0)):
        clocks = time.perf_counter, time.process_time
        start = [clock() for clock in clocks]
        session.step(batch.to(fabric.device), step)
        seconds.append([clock() - begin for clock, begin in zip(clocks, start, strict=True)])
    medians = [statistics.median(times) for times in zip(*seconds[2:], strict=True)]
    Path(f"{prefix}-{rank}.json").write_text(json.dumps(medians))
    processes.leave()


if __name__ == "__main__":
    main()
