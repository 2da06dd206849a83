"""Several processes beside one: `python benchmarks/processes.py equality`, `python benchmarks/processes.py speed`.

equality: every recipe, made small, trains some steps on 1, 2 and 4 gloo processes in float64, each with its share of
the same batches; the largest relative difference of a loss from one process is written. Protocols judge one encoder on
1, 2 and 4 processes; the largest difference of a measure, in points, is written.

speed: how many times as fast two processes train as one, each with one thread, in turn. It needs two idle cores.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as spawning
from timing import RESULTS, write_results

from vantage import processes
from vantage.data import Arrays, SourceSubset
from vantage.encoders import Convolutions, Encoder, Momentum, PerView, Shared, SplitBatchNorm
from vantage.encoding import Work
from vantage.evaluate import KNN, FineTune, LinearCached, LinearMoCo, Retrieval
from vantage.frozen.encoder import random_encoder
from vantage.progress import QuietProgress
from vantage.recipes import RECIPES, moco_v2
from vantage.training.first_rows import begin
from vantage.training.run import Data, Hardware, Monitoring, Run
from vantage.training.session import Session, launch

COUNTS, STEPS, IMAGES, SIZE = (1, 2, 4), 6, 64, 16
SPEEDS = {
    "moco_v2, ResNet-9 of width 16, 32 px, batch 128": ("ResNet9(16)", 2048, 3),
    "moco_v2, ResNet-18, 32 px, batch 128": ("ResNet(18, small=True)", 256, 1),
}
"""By name: the backbone, the images of an epoch, and how often one and two processes are timed in turn."""
PROTOCOLS = (
    KNN(5),
    Retrieval(5),
    LinearCached(),
    LinearMoCo((3.0, 10.0), 3, batch_size=16),
    FineTune(1.0, epochs=3, batch_size=24),
)


def images(count: int = IMAGES) -> Arrays:
    """Colored noise of three classes."""
    chance, label = np.random.default_rng(0), np.arange(count) % 3
    color = chance.uniform(40, 215, (3, 1, 1, 3))[label]
    pixels = (color + chance.normal(0, 250, (count, SIZE, SIZE, 3))).clip(0, 255).astype(np.uint8)
    return Arrays(pixels, label, "noise")


def small(run: Run, count: int) -> Run:
    """A recipe with narrow convolutions, batches of 8 and BatchNorm in two groups where it has groups."""
    run = run.fit(IMAGES).resized(8, 4)

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


def losses(recipe: Callable[..., Run]) -> list[float]:
    """The losses of the first steps, on all processes together."""
    fabric, run = launch(small(recipe(SIZE), processes.count()), QuietProgress())
    session = Session(run, fabric, images())
    begin(session.learner, run, session.source, QuietProgress())
    values = []
    for step, batch in zip(range(STEPS), session.feed.batches(0, 0), strict=False):
        values.append(float(processes.total(session.step(batch.to(fabric.device), step))) / processes.count())
    return values


def measures(folder: Path) -> dict[str, dict[str, float]]:
    """The measures of every protocol."""
    encoder, source = random_encoder(small(moco_v2(SIZE), 1)), images(90)
    train, test = SourceSubset(source, range(60)), SourceSubset(source, range(60, 90))
    work = Work("cpu", 16, 1, cache=folder / f"cache-{processes.count()}")
    return {one.name: dict(one(encoder, train, test, work).measures) for one in PROTOCOLS}


def work(rank: int, count: int, folder: str) -> None:
    """What each process does; the first writes what all have computed."""
    torch.set_num_threads(1)
    here = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
    if count > 1:
        os.environ.update({name: str(value) for name, value in here.items()} | {"TORCHELASTIC_RUN_ID": "benchmark"})
        dist.init_process_group("gloo", init_method=f"file://{folder}/meeting-{count}", rank=rank, world_size=count)
    results = {"losses": {recipe.__name__: losses(recipe) for recipe in RECIPES}, "measures": measures(Path(folder))}
    if rank == 0:
        (Path(folder) / f"{count}.json").write_text(json.dumps(results))
    processes.leave()


def equality() -> list[dict[str, Any]]:
    """Losses and measures of several processes beside those of one."""
    with tempfile.TemporaryDirectory() as folder:
        for count in COUNTS:
            spawning.spawn(work, (count, folder), nprocs=count)  # pyright: ignore[reportPrivateImportUsage]
        each = {count: json.loads((Path(folder) / f"{count}.json").read_text()) for count in COUNTS}
    rows: list[dict[str, Any]] = []
    for name, values in each[1]["losses"].items():
        apart = {count: _apart(each[count]["losses"][name], values) for count in COUNTS[1:]}
        rows.append({"what": "recipe", "name": name, "steps": len(values), "largest_relative_difference": apart})
    for name, values in each[1]["measures"].items():
        points = {count: _points(each[count]["measures"][name], values) for count in COUNTS[1:]}
        rows.append({"what": "protocol", "name": name, "measures": values, "largest_difference_in_points": points})
    return rows


def _apart(ours: list[float], theirs: list[float]) -> float:
    """The largest difference, relative to the largest loss: a loss of the first steps may be 0."""
    apart = [abs(mine - other) for mine, other in zip(ours, theirs, strict=True)]
    return max(apart) / max(map(abs, theirs))


def _points(ours: dict[str, float], theirs: dict[str, float]) -> float:
    return max(abs(ours[name] - value) for name, value in theirs.items())


def speed() -> list[dict[str, Any]]:
    """Seconds of the same training on one process and on two of one thread each, in turn."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, (backbone, count, rounds) in SPEEDS.items():
            place = Path(folder) / f"{count}.npz"
            chance = np.random.default_rng(0)
            np.savez(place, images=chance.integers(0, 256, (count, 32, 32, 3), np.uint8), labels=np.arange(count) % 10)
            seconds: dict[int, list[float]] = {1: [], 2: []}
            for turn in range(rounds):
                for several in seconds:
                    out = Path(folder) / f"{name}-{turn}-{several}"
                    seconds[several].append(_epoch(place, out, several, backbone))
            ratios = [one / two for one, two in zip(seconds[1], seconds[2], strict=True)]
            times = {"times_as_fast": statistics.median(ratios), "each_round": ratios}
            rows.append({"what": "speed", "name": name, "images": count, "seconds_of_an_epoch": seconds, **times})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def _epoch(place: Path, folder: Path, count: int, backbone: str) -> float:
    """Seconds of the second of two epochs, by the clock of the run itself."""
    words = ["pretrain", "moco_v2", "--data", str(place), "--out", str(folder), "--size", "32", "--epochs", "2"]
    words += ["--batch-size", "128", "--precision", "32-true", "--devices", str(count)]
    words += ["--set", "hardware.accelerator=cpu", "--set", f"encoders.encoder.backbone={backbone}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "vantage.cli", "--quiet", *words], check=True, env=environment)
    first, second = (json.loads(line)["seconds"] for line in (folder / "metrics.jsonl").read_text().splitlines())
    return second - first


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["equality", "speed"])
    options = parser.parse_args()
    file = RESULTS / "processes.json"
    before = json.loads(file.read_text())["rows"] if file.exists() else []
    fresh = equality() if options.what == "equality" else speed()
    kinds = {row["what"] for row in fresh}
    write_results("processes", [*(row for row in before if row["what"] not in kinds), *fresh])


if __name__ == "__main__":
    main()
