"""What it saves to make the small views of a growing run small, instead of at full size and then scaled down.

    python benchmarks/small_views.py --data ../shared/data

The recipe of a plan with ResNet-9 of width 16, batch 256, on one thread: processor time of the views of a step, of the
whole step, and of the networks alone (both views, forward and backward), in each stage of growth. Both ways take turns,
on the same images with the same random numbers. `rest` is what a step takes beyond the networks, as a share of their
time.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from timing import write_results
from torch import Tensor

from vantage.data import Batch, open_source
from vantage.encoders import ResNet9
from vantage.planning.ladder import Rung
from vantage.planning.sizing import PlanOptions, compose, fit_run
from vantage.progress import QuietProgress
from vantage.training.computing.launch import launch
from vantage.training.images import training_part
from vantage.training.run import Data
from vantage.training.session import Session
from vantage.views import ProgressiveResizing

SETS = {"cifar10-jpg": ("cifar10-jpg.tar.gz#train", 0), "flowers5": ("flowers5-128.tar.gz", 64)}
"""Path of each set, and the side of the squares that a plan keeps in memory; 0 if it keeps images as they are."""
STAGES = {"half": 0.0, "three quarters": 0.55, "full": 0.8}
"""Sides of the views, and the share of the run at which they have it."""
IMAGES, ROUNDS = 3_584, 7
WAYS = ("scaled down", "made small")


def session_on(data: str, squares: int) -> Session:
    """A session of the plan's recipe on some of the images, in memory, where `squares` is the side of their squares."""
    source, options = open_source(data), PlanOptions()
    run = compose(options, Rung(ResNet9(16, features=256), 32, 0))
    run = replace(
        run,
        data=Data(data, max_images=IMAGES, num_workers=0, resident_side=squares),
        hardware=replace(run.hardware, accelerator="cpu", threads=1),
    )
    part = training_part(source, run.data)
    fabric, run = launch(fit_run(options, run, len(part), 20), QuietProgress())
    return Session(run, fabric, part)


def seconds(work: Callable[..., object], *arguments: object) -> float:
    """Processor time of a call."""
    start = time.process_time()
    work(*arguments)
    return time.process_time() - start


def through(session: Session, views: dict[int, Tensor]) -> None:
    """Forward and backward pass of the networks, without a loss."""
    with session.fabric.autocast():  # the precision of the step
        vectors = session.learner.networks.queries(views).values()
    torch.stack([vector.float().sum() for vector in vectors]).sum().backward()


def stage_of(session: Session, batches: list[Batch], first: int) -> dict[str, list[float]]:
    """Seconds by what was timed, from this step on; the first round is dropped."""
    times: dict[str, list[float]] = {}
    for turn in range(ROUNDS + 1):
        batch = batches[turn % len(batches)]
        session.generator.share = (0, len(batch.image), len(batch.image))
        for way in WAYS:
            maker = patch.object(ProgressiveResizing, "maker", lambda self, views, share: views)
            if way == "scaled down":
                maker.start()
            session.generator.manual_seed(turn)
            times.setdefault(f"views, {way}", []).append(seconds(session.views_of, batch, first + turn))
            times.setdefault(f"step, {way}", []).append(seconds(session.step, batch, first + turn))
            if way == "scaled down":
                maker.stop()
        views = dict(enumerate(session.views_of(batch, first + turn)))
        times.setdefault("networks", []).append(seconds(through, session, views))
        session.optimizer.zero_grad(set_to_none=True)
    return {name: values[1:] for name, values in times.items()}


def row(times: dict[str, list[float]]) -> dict[str, Any]:
    """Medians in milliseconds, ratios of pairs, and the rest of a step."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    pairs = {
        part: [before / after for before, after in zip(*(times[f"{part}, {way}"] for way in WAYS), strict=True)]
        for part in ("views", "step")
    }
    return {
        "milliseconds": {name: round(1e3 * value, 1) for name, value in medians.items()},
        "times_as_fast": {part: round(statistics.median(ratios), 3) for part, ratios in pairs.items()},
        "rest": {way: round(medians[f"step, {way}"] / medians["networks"] - 1, 3) for way in WAYS},
    }


def main() -> None:
    """Measure every stage of both sets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    parser.add_argument("--results", default="small_views", help="name of the results file: one for each processor")
    options = parser.parse_args()
    folder = options.data
    torch.set_num_threads(1)
    rows: list[dict[str, Any]] = []
    for name, (file, squares) in SETS.items():
        session = session_on(str(folder / file), squares)
        batches, steps = list(session.feed.batches(0, 0)), session.run.epochs * session.feed.steps
        for stage, share in STAGES.items():
            rows.append({"set": name, "side": stage, **row(stage_of(session, batches, int(share * steps)))})
            print(json.dumps(rows[-1]), flush=True)
    write_results(options.results, rows)


if __name__ == "__main__":
    main()
