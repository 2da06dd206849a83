"""Training steps compiled by torch.compile: the networks alone, or networks, losses and their gradients as one graph.

    python benchmarks/compiled.py

Recipes at 32 px with their plan's network for few minutes (ResNet-9 of width 16) and the batch that suits it, on views
made beforehand; one thread, processor time, all three ways in turn. A step is what the training loop calls: forward,
backward, optimizer, memory, momentum encoder. `training/computing/compiling.py` decides what
`Hardware.compile` compiles.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from step import training_step
from timing import interleave, speedup, write_results

import vantage
from vantage.composition.fitting import everywhere
from vantage.encoders import Encoder, ResNet9
from vantage.training.computing.compiling import compile_learner, compile_networks, is_one_graph

RECIPES = ("simclr", "moco_v2", "jcl")
WAYS = ("as it is", "networks", "step")


def small(name: str) -> vantage.Run:
    """A recipe with the ResNet-9 that plans take."""
    run = getattr(vantage, name)(size=32)
    change = lambda part: replace(part, backbone=ResNet9(16)) if isinstance(part, Encoder) else part  # noqa: E731
    return replace(run, encoders=everywhere(run.encoders, change))


def stepper(run: vantage.Run, way: str, batch: int) -> Callable[[], None]:
    """One training step, compiled in this way."""
    torch.manual_seed(0)
    learner = vantage.Learner(run.encoders, run.branches, images=10_000, seed=0)
    learner.networks.to(memory_format=torch.channels_last)  # pyright: ignore
    views = [torch.randn(batch, 3, 32, 32).contiguous(memory_format=torch.channels_last) for _ in range(learner.views)]
    if way == "step":
        assert is_one_graph(run.branches)
        compile_learner(learner)
    if way == "networks":
        compile_networks(learner)
    return training_step(run, learner, views)


def main() -> None:
    """Time the recipes, and write results/compiled.json."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in RECIPES:
        steps, first = {way: stepper(small(name), way, options.batch) for way in WAYS}, dict[str, float]()
        for way, step in steps.items():
            start = time.process_time()
            step()
            first[way] = time.process_time() - start
        seconds = interleave(steps, options.rounds)
        for way, times in seconds.items():
            row = {"recipe": name, "compiled": way, "ms": round(1e3 * statistics.median(times), 1)}
            row |= {"times as fast as it is": round(speedup(seconds, way, WAYS[0]), 3)}
            row |= {"seconds of the first step": round(first[way], 1)}
            rows.append(row)
            print(row, flush=True)
    write_results("compiled", rows)


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
