"""A training step on a GPU, by recipe, compared with the passes of its networks alone.

    python benchmarks/gpu.py --data cifar10-jpg.tar.gz#train [--recipes moco_v2 jcl] [--ways graph single] [--profile]

ResNet-18 for 32 pixels, batch 512, bf16, images kept on the device: the same as `vantage pretrain` with `--backbone
resnet18 --size 32 --batch-size 512`. A step is `Session.step`: views, passes, loss, optimizer and all stores.

* graph: the networks' passes are CUDA graphs, which is how runs train on one GPU
* single: operations start one by one (`--set hardware.graphs=False`)
* compiled: compiled, and then a graph (`--set hardware.compile=True`)

"views" makes the views of a step only, and "networks" repeats only the passes of the networks, one by one, without
views, loss, optimizer and stores. Each round runs `--steps` steps of every case in turn; results are the median, and
the ratios to `moco_v2` by round. Memory is the case's peak on the device, including its images.
"""

import argparse
import statistics
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from timing import interleave, speedup, write_results
from torch.profiler import ProfilerActivity, profile

from vantage.data import Batch, open_source
from vantage.encoders import backbone_named
from vantage.planning.sizing import with_network
from vantage.progress import QuietProgress
from vantage.recipes import RECIPES
from vantage.training.computing.launch import launch
from vantage.training.run import Run
from vantage.training.session import Session
from vantage.training.start.first_rows import begin

BASE, WAYS = "moco_v2", ("graph", "single", "compiled")
RECIPES_SHOWN = (BASE, "moco_v1", "ring_moco", "jcl", "interclr", "simclr", "hcl", "instance_discrimination", "ring_ir",
                 "infomin", "everything")  # fmt: skip
WARM = 30
"""Steps before timing starts."""


class Steps:
    """A recipe in training, step by step."""

    def __init__(self, run: Run, source: Any) -> None:
        fabric, run = launch(run, QuietProgress())
        self.session, self.step, self.epoch = Session(run, fabric, source), 0, 0
        begin(self.session.learner, run, source, QuietProgress())
        self.batches = self.session.feed.batches(0, 0)
        self.first = self.batch()
        self.views = self.session.feed.views_of(self.first, self.session.generator)

    def batch(self) -> Batch:
        """The next batch; after the last one of an epoch, the first of the next."""
        batch = next(self.batches, None)
        if batch is None:
            self.epoch += 1
            self.batches = self.session.feed.batches(self.epoch, 0)
            batch = next(self.batches)
        return batch.to(self.session.fabric.device)

    def go(self, count: int) -> None:
        """Take `count` steps."""
        for _ in range(count):
            self.session.step(self.batch(), self.step)
            self.step += 1

    def make_views(self) -> None:
        """The views of one batch."""
        self.session.feed.views_of(self.first, self.session.generator)

    def networks(self) -> None:
        """The passes of a step's networks alone, on the views of one batch."""
        learner = self.session.learner
        with torch.autocast("cuda", torch.bfloat16):
            queries = learner.networks.queries({n: self.views[n] for n in learner.query_views})
            views = {n: self.views[n] for n in learner.key_views}
            keys = learner.networks.keys(views, queries, learner.networks.orders(views, 0))
            torch.stack([vector.sum() for vector in (*queries.values(), *keys.values())]).sum().backward()
        self.session.optimizer.zero_grad(set_to_none=True)


def run_of(recipe: Callable[[int], Run], images: int, batch: int, backbone: str, way: str) -> Run:
    """A recipe with a backbone, for a number of images and a batch size, computed in one of the `WAYS`."""
    run = with_network(recipe(32), backbone_named(backbone, 32)).fit(images, batch).rescale(batch, 200)
    hardware = replace(run.hardware, accelerator="cuda", compile=way == "compiled", graphs=way != "single")
    return replace(run, hardware=hardware)


def main() -> None:
    """Time, print, and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--recipes", nargs="+", default=list(RECIPES_SHOWN))
    parser.add_argument("--ways", nargs="+", default=["graph", "single"], choices=WAYS)
    parser.add_argument("--batch-size", type=int, default=512)
    parser.add_argument("--backbone", default="resnet18")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", default="gpu")
    parser.add_argument("--profile", action="store_true", help="print the most expensive operations of each case")
    options = parser.parse_args()
    source, recipes = open_source(options.data), {recipe.__name__: recipe for recipe in RECIPES}
    cases: dict[str, Callable[[], Any]] = {}
    peaks = {}
    for name, way in ((name, way) for name in options.recipes for way in options.ways):
        torch.cuda.reset_peak_memory_stats()
        memory_before = torch.cuda.memory_allocated()
        steps = Steps(run_of(recipes[name], len(source), options.batch_size, options.backbone, way), source)
        steps.go(WARM)
        peaks[name, way] = (torch.cuda.max_memory_allocated() - memory_before) / 2**20
        if options.profile:
            _profile(f"{name}, {way}", steps)
            continue
        cases[f"{name}, {way}"] = lambda steps=steps: steps.go(options.steps)
        if way == options.ways[0]:
            cases[f"{name}, views"] = lambda steps=steps: [steps.make_views() for _ in range(options.steps)]
            cases[f"{name}, networks"] = lambda steps=steps: [steps.networks() for _ in range(options.steps)]
    if not options.profile:
        write_results(options.results, _rows(interleave(cases, options.rounds), peaks, options))


def _rows(
    seconds: dict[str, list[float]], peaks: dict[tuple[str, str], float], options: argparse.Namespace
) -> list[dict[str, Any]]:
    """One for each recipe and way."""
    rows: list[dict[str, Any]] = []
    base = f"{BASE}, {options.ways[0]}"
    each = {case: statistics.median(times) / options.steps for case, times in seconds.items()}
    for (name, way), peak in peaks.items():
        step = each[f"{name}, {way}"]
        row: dict[str, Any] = {"recipe": name, "way": way, "ms a step": round(1e3 * step, 2)}
        row["images/s"] = round(options.batch_size / step)
        if base in seconds:
            row[f"times {base}"] = round(1 / speedup(seconds, f"{name}, {way}", base), 2)
        row |= {f"{part}, ms": round(1e3 * each[f"{name}, {part}"], 2) for part in ("views", "networks")}
        rows.append({**row, "peak MiB": round(peak)})
        print(rows[-1], flush=True)
    return rows


def _profile(name: str, steps: Steps) -> None:
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        steps.go(10)
        torch.cuda.synchronize()
    print(
        f"== {name}\n{profiler.key_averages().table(sort_by='cuda_time_total', row_limit=14, max_name_column_width=60)}"
    )
    print(profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=14, max_name_column_width=60))


if __name__ == "__main__":
    main()
