"""How much training on a CPU gains by keeping freed memory: the same steps with glibc's defaults and with Vantage's.

    python benchmarks/allocator.py [--rounds 5]

Each round runs every case in turn, each in a fresh process: SimCLR with four convolutions, 32 px, batch 256, views
included, one thread. Processor time and page faults are per step; the peak memory is that of the process.
"""

import argparse
import dataclasses
import json
import resource
import statistics
import time

import numpy as np
import torch
from timing import environment_without, fresh, write_results

import vantage
from vantage.data.sources.arrays import Arrays
from vantage.encoders import Convolutions, Encoder, NormalizedMLP, Shared
from vantage.progress import QuietProgress
from vantage.training.computing.launch import launch
from vantage.training.session import Session

# Sets a variable of glibc's allocator to its own default: if any such variable is set, Vantage changes nothing.
CASES = {"default": {"MALLOC_ARENA_TEST": "8"}, "kept": {}}
BATCH, STEPS, WARM_UP = 256, 10, 3


def measure() -> dict[str, float]:
    """Processor time in seconds and page faults per training step in this process, and its peak memory in MiB."""
    torch.set_num_threads(1)
    run = vantage.simclr(32)
    hardware = dataclasses.replace(run.hardware, accelerator="cpu", precision="32-true")
    encoders = Shared(Encoder(Convolutions(), NormalizedMLP(512, 128)))
    run = dataclasses.replace(run, encoders=encoders, batch_size=BATCH, epochs=20, hardware=hardware)
    pixels = np.random.default_rng(0).integers(0, 256, ((WARM_UP + STEPS) * BATCH, 32, 32, 3), np.uint8)
    fabric, run = launch(run, QuietProgress())
    session = Session(run, fabric, Arrays(pixels, None, "noise"))
    for step, batch in enumerate(session.feed.batches(0, 0)):
        if step == WARM_UP:
            start, faults_before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        session.step(batch, step)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": (time.process_time() - start) / STEPS,
        "page faults": (usage.ru_minflt - faults_before) / STEPS,
        "peak": usage.ru_maxrss / 1024,
    }


def main() -> None:
    """Measure every case in turn, and write the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--here", action="store_true", help="measure in this process and print it (used by the rounds)")
    options = parser.parse_args()
    if options.here:
        print(json.dumps(measure()))
        return
    rounds = [{name: _fresh(variables) for name, variables in CASES.items()} for _ in range(options.rounds)]
    rows = [{"case": name, **_medians([one[name] for one in rounds])} for name in CASES]
    faster = statistics.median(one["default"]["seconds"] / one["kept"]["seconds"] for one in rounds)
    larger = statistics.median(one["kept"]["peak"] / one["default"]["peak"] for one in rounds)
    rows.append({"case": "kept against default", "times as fast": round(faster, 3), "times the peak": round(larger, 3)})
    for row in rows:
        print(row)
    write_results("allocator", rows)


def _fresh(variables: dict[str, str]) -> dict[str, float]:
    plain = environment_without("MALLOC_", "GLIBC_TUNABLES")
    return fresh(__file__, "--here", environment=plain | variables)


def _medians(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {name: round(statistics.median(one[name] for one in rounds), 4) for name in rounds[0]}


if __name__ == "__main__":
    main()
