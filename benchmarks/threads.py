"""How much training gains if waiting threads soon sleep: two threads, alone and beside busy programs.

    python benchmarks/threads.py [--rounds 3]

Each round trains in a fresh process for every case and number of busy programs: SimCLR with a ResNet-9 of width 16,
32 px, batch 256, views included, two threads on a machine with two cores.
"""

import argparse
import dataclasses
import json
import statistics
import subprocess
import sys
import time

from timing import environment_without, fresh, write_results

# torch's libgomp ignores KMP_BLOCKTIME, but Vantage changes nothing if such a variable is set.
CASES = {"default": {"KMP_BLOCKTIME": "200"}, "sleeping soon": {}, "passive": {"OMP_WAIT_POLICY": "passive"}}
BUSY = (0, 1, 3)
BATCH, SECONDS, WARM_UP = 256, 8.0, 3


def measure() -> float:
    """Images a second of training in this process."""
    from vantage.machine.openmp import sleep_soon

    sleep_soon()
    import numpy as np
    import torch

    import vantage
    from vantage.data.sources.arrays import Arrays
    from vantage.encoders import Encoder, NormalizedMLP, ResNet9, Shared
    from vantage.machine.allocator import keep_freed_memory
    from vantage.progress import QuietProgress
    from vantage.training.computing.launch import launch
    from vantage.training.session import Session

    keep_freed_memory()
    torch.set_num_threads(2)
    run = vantage.simclr(32)
    hardware = dataclasses.replace(run.hardware, accelerator="cpu", precision="32-true")
    encoders = Shared(Encoder(ResNet9(width=16), NormalizedMLP(512, 128)))
    run = dataclasses.replace(run, encoders=encoders, batch_size=BATCH, epochs=100, hardware=hardware)
    pixels = np.random.default_rng(0).integers(0, 256, (20 * BATCH, 32, 32, 3), np.uint8)
    fabric, run = launch(run, QuietProgress())
    session = Session(run, fabric, Arrays(pixels, None, "noise"))
    step = 0
    for epoch in range(100):
        for batch in session.feed.batches(epoch, 0):
            if step == WARM_UP:
                start = time.monotonic()
            session.step(batch, step)
            step += 1
            if step > WARM_UP and time.monotonic() - start > SECONDS:
                return (step - WARM_UP) * BATCH / (time.monotonic() - start)
    raise AssertionError("the images do not suffice for the seconds")


def main() -> None:
    """Measure every case in turn, and write the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--here", action="store_true", help="measure in this process and print it (used by the rounds)")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure()))
        return
    speeds: dict[tuple[int, str], list[float]] = {}
    for _ in range(options.rounds):
        for busy in BUSY:
            for name, variables in CASES.items():
                speeds.setdefault((busy, name), []).append(_beside(busy, variables))
                print(busy, name, round(speeds[busy, name][-1]), flush=True)
    rows = [
        {
            "busy programs": busy,
            "threads that wait": name,
            "images/s": round(statistics.median(values)),
            "times the default": round(
                statistics.median(a / b for a, b in zip(values, speeds[busy, "default"], strict=True)), 2
            ),
        }
        for (busy, name), values in speeds.items()
    ]
    for row in rows:
        print(row)
    write_results("threads", rows)


def _beside(busy: int, variables: dict[str, str]) -> float:
    """Images a second in a fresh process, beside this many busy programs."""
    plain = environment_without("GOMP_", "OMP_", "KMP_")
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(busy)]
    try:
        return fresh(__file__, "--here", environment=plain | variables)
    finally:
        for program in programs:
            program.kill()
            program.wait()


if __name__ == "__main__":
    main()
