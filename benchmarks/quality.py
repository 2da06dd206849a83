"""Train recipes on real images and judge them against raw pixels and a random encoder, over seeds.

    python benchmarks/quality.py --data ../shared/data --sets cifar10-jpg tiny-imagenet-50 --images 50000 --seeds 0 1 2

A budget of some tens of thousands of images on a CPU shows that training works, not how good a method is: published
numbers take 200 to 1000 epochs. CIFAR-10 here is recompressed as JPEG (quality 75), so its accuracies compare with no
published ones either. Nothing is tuned on the test images: the recipes are taken as `Run.fit` gives them, but for the
epochs and the stem's stride.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from timing import write_results

import vantage
from vantage.data import open_source
from vantage.encoders import Momentum, ResNet, Shared
from vantage.evaluate import KNN, LinearCached, evaluate
from vantage.loop import train
from vantage.progress import PlainTeller

PLACES = {
    "cifar10-jpg": ("cifar10-jpg.tar.gz#train", "cifar10-jpg.tar.gz#test"),
    "tiny-imagenet-50": ("tiny-imagenet-50.tar.gz#train", "tiny-imagenet-50.tar.gz#val"),
}
RECIPES: dict[str, Callable[[int], vantage.Run]] = {"simclr": vantage.simclr, "moco_v2": vantage.moco_v2}


def main() -> None:
    """Run every set, recipe and seed, and write results/quality.json after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder that holds the sets")
    parser.add_argument("--sets", nargs="+", choices=PLACES, default=list(PLACES))
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=50_000, help="images to train on in all, rounded to epochs")
    parser.add_argument("--stride", type=int, choices=(1, 2), default=2, help="stride of the stem: 2 is 4x faster")
    parser.add_argument("--name", default="quality", help="name of the results file")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for seed in chosen.seeds:
        for name in chosen.sets:
            for recipe in chosen.recipes:
                rows.append(measure(chosen.data, name, recipe, seed, chosen.images, chosen.stride))
                print(rows[-1], flush=True)
                write_results(chosen.name, [*rows, *summary(rows)])


def measure(data: Path, name: str, recipe: str, seed: int, images: int, stride: int) -> dict[str, Any]:
    """Train once and judge: one row."""
    train_place, test_place = (f"{data}/{place}" for place in PLACES[name])
    source, test = open_source(train_place), open_source(test_place)
    fitted = RECIPES[recipe](32).fit(len(source))
    run = fitted.resized(epochs=max(1, round(images / len(source))))
    run = replace(_with_stride(run, stride), seed=seed, data=vantage.Data(train_place))
    folder = Path(tempfile.mkdtemp(prefix="vantage-quality-"))
    try:
        start = time.perf_counter()
        train(run, folder / "run", PlainTeller())
        seconds = time.perf_counter() - start
        row: dict[str, Any] = {"set": name, "recipe": recipe, "seed": seed, "epochs": run.epochs, "batch": run.batch}
        row |= {"images": len(source), "train_seconds": round(seconds), "stem_stride": stride}
        for protocol in (KNN(), LinearCached()):
            result = evaluate(folder / "run", protocol, source, test, baselines=True)
            for encoder, outcome in result.outcomes.items():
                row[f"{protocol.name}: {encoder}"] = round(outcome.accuracy.top1, 2)
        return row
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _with_stride(run: vantage.Run, stride: int) -> vantage.Run:
    role = run.encoders
    assert isinstance(role, Shared | Momentum)
    backbone = role.encoder.backbone
    assert isinstance(backbone, ResNet)
    encoder = replace(role.encoder, backbone=replace(backbone, stem_stride=stride))
    return replace(run, encoders=replace(role, encoder=encoder))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and standard deviation over seeds of every accuracy."""
    groups = dict.fromkeys((row["set"], row["recipe"]) for row in rows)
    found = []
    for name, recipe in groups:
        mine = [row for row in rows if (row["set"], row["recipe"]) == (name, recipe)]
        told: dict[str, Any] = {"summary of": name, "recipe": recipe, "seeds": len(mine)}
        for key in mine[0]:
            if ": " in key:
                values = [row[key] for row in mine]
                spread = statistics.stdev(values) if len(values) > 1 else float("nan")
                told[key] = f"{statistics.mean(values):.2f} ± {spread:.2f}"
        found.append(told)
    return found


if __name__ == "__main__":
    torch.set_num_threads(2)
    main()
