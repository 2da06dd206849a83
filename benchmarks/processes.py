"""Compare several processes with one: `python benchmarks/processes.py recipes [NAME …]`, `… protocols [NAME …]`.

recipes: every recipe and variant, scaled down, trains some steps on 1, 2 and 4 gloo processes in float64, each with its
share of the same batches. Reports the largest difference of a loss from one process, relative to the largest loss, and
that of the first loss.

protocols: every protocol of `vantage evaluate`, shortened, evaluates a random network on 1, 2 and 4 processes in
float32. Reports the largest difference of a measure, in points, and of a training loss, if there are any.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as spawning

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "support"))

import short_protocols
from timing import merge_rows, write_results

from vantage import processes
from vantage.encoders import Convolutions, Encoder, Momentum, PerView, Shared, SplitBatchNorm
from vantage.encoding import Work
from vantage.progress import QuietProgress
from vantage.recipes import RECIPES, VARIANTS
from vantage.training.computing.launch import launch
from vantage.training.run import Data, Hardware, Monitoring, Run
from vantage.training.session import Session
from vantage.training.start.first_rows import begin

COUNTS, STEPS, IMAGES, SIZE = (1, 2, 4), 6, 64, 16


def small(run: Run, count: int) -> Run:
    """A recipe with narrow convolutions, batches of 8 and, if its BatchNorm has groups, two of them."""
    run = run.fit(IMAGES).rescale(8, 4)

    def narrow(encoder: Encoder) -> Encoder:
        channels = getattr(encoder.backbone, "in_channels", 3)
        backbone = Convolutions(widths=(8, 12), in_channels=channels)
        groups = isinstance(encoder.normalization, SplitBatchNorm)
        return replace(encoder, backbone=backbone, **({"normalization": SplitBatchNorm(2)} if groups else {}))

    role: Any = run.encoders
    if isinstance(role, PerView):
        role = PerView(tuple(map(narrow, role.encoders)))
    elif isinstance(role, Shared | Momentum):
        role = replace(role, encoder=narrow(role.encoder))
    hardware = Hardware("cpu", devices=count, precision="64-true")
    return replace(run, encoders=role, data=Data(), hardware=hardware, monitoring=Monitoring(log_every=1))


def recipe_losses(recipe: Callable[..., Run], folder: Path) -> dict[str, list[float]]:
    """The losses of the first steps, on all processes together."""
    fabric, run = launch(small(recipe(SIZE), processes.count()), QuietProgress())
    session = Session(run, fabric, short_protocols.noise(IMAGES, SIZE))
    begin(session.learner, run, session.source, QuietProgress())
    values = []
    for step, batch in zip(range(STEPS), session.feed.batches(0, 0), strict=False):
        values.append(float(processes.total(session.step(batch.to(fabric.device), step))) / processes.count())
    return {"losses": values}


def protocol_result(protocol: Any, folder: Path) -> dict[str, Any]:
    """A protocol's measures and training losses."""
    train, test = short_protocols.sets_for(protocol, folder / f"{processes.count()}-{processes.rank()}")
    work = Work("cpu", 16, 1, cache=folder / f"cache-{processes.count()}")
    outcome = protocol(short_protocols.encoder_for(protocol), train, test, work)
    return {"measures": dict(outcome.measures), "losses": np.ravel(outcome.details.get("losses", [])).tolist()}


def protocols() -> list[Any]:
    """Every protocol, made short."""
    return [*short_protocols.labeled(), short_protocols.SEGMENTATION, *short_protocols.detectors()]


def cells(kind: str) -> dict[str, Callable[[Path], dict[str, Any]]]:
    """What is computed on every number of processes, by name."""
    recipes = {recipe.__name__: partial(recipe_losses, recipe) for recipe in (*RECIPES, *VARIANTS)}
    return recipes if kind == "recipes" else {one.name: partial(protocol_result, one) for one in protocols()}


def meet(rank: int, count: int, meeting: str) -> None:
    """Join the other processes, as if torchrun had started them; each has one thread."""
    torch.set_num_threads(1)
    if count > 1:
        environment = {
            "RANK": rank,
            "LOCAL_RANK": rank,
            "GROUP_RANK": 0,
            "WORLD_SIZE": count,
            "LOCAL_WORLD_SIZE": count,
        }
        os.environ.update(
            {name: str(value) for name, value in environment.items()} | {"TORCHELASTIC_RUN_ID": "benchmark"}
        )
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=count)


def compute(rank: int, count: int, folder: str, kind: str, names: list[str]) -> None:
    """Compute every cell, or those named, as one of the processes; the first process writes the results."""
    meet(rank, count, f"{folder}/meeting-{count}")
    for name, cell in cells(kind).items():
        if names and name not in names:
            continue
        start, result = time.perf_counter(), cell(Path(folder))
        if rank == 0:
            print(f"{count} {name} {time.perf_counter() - start:.1f} s", flush=True)
            with (Path(folder) / f"{count}.jsonl").open("a") as file:
                file.write(json.dumps({"name": name, **result}) + "\n")
    processes.leave()


def equality(kind: str, names: list[str]) -> list[dict[str, Any]]:
    """Losses and measures of several processes, compared with those of one."""
    results: dict[int, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            spawning.spawn(compute, (count, folder, kind, names), nprocs=count)  # pyright: ignore[reportPrivateImportUsage]
            lines = (Path(folder) / f"{count}.jsonl").read_text().splitlines()
            results[count] = {row["name"]: row for row in map(json.loads, lines)}
    rows: list[dict[str, Any]] = []
    for name, one in results[1].items():
        row: dict[str, Any] = {"what": kind, "name": name}
        if "measures" in one:
            row["measures"] = one["measures"]
            row["points"] = {n: _points(results[n][name]["measures"], one["measures"]) for n in COUNTS[1:]}
        if one["losses"]:
            row["losses"] = len(one["losses"])
            row["of_the_first"] = {n: _apart(results[n][name]["losses"][:1], one["losses"][:1]) for n in COUNTS[1:]}
            row["relative_difference"] = {n: _apart(results[n][name]["losses"], one["losses"]) for n in COUNTS[1:]}
        rows.append(row)
    return rows


def _apart(ours: list[float], theirs: list[float]) -> float:
    """The largest difference, relative to the largest loss, since a loss of the first steps may be 0."""
    apart = [abs(mine - other) for mine, other in zip(ours, theirs, strict=True)]
    return max(apart) / max(map(abs, theirs))


def _points(ours: dict[str, float], theirs: dict[str, float]) -> float:
    return max(abs(ours[name] - value) for name, value in theirs.items())


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["recipes", "protocols"])
    parser.add_argument("names", nargs="*", help="only these; other rows of the results file stay as they are")
    options = parser.parse_args()
    write_results("processes", merge_rows("processes", "name", equality(options.what, options.names)))


if __name__ == "__main__":
    main()
