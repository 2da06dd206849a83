"""Train recipes on real images and compare them with raw pixels and a random encoder, over seeds.

    python benchmarks/quality.py --data ../shared/data --seeds 0 1 --images 12500 --epochs 3

A budget of some tens of thousands of images on a CPU shows that training works, not how good a method is: published
numbers take 200 to 1000 epochs. CIFAR-10 here is recompressed as JPEG (quality 75), so its accuracies cannot be
compared with published ones either. The recipes are used as `Run.fit` returns them, with changes for the short
schedule: batches of 64, the small stem with stride 2 (a quarter of the work), a rate that decays by step; for SimCLR,
AdamW at 1e-3, since LARS moves too little in some hundred steps; for MoCo, its own SGD at 0.03 and its own momentum
encoder. Chosen without labels: MoCo with AdamW, a momentum of 0.95 and a queue of 1,024 was tried first and collapsed,
as its own log of loss and rank shows; those rows are kept. With `--published`, nothing is changed.
"""

import argparse
import json
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from timing import write_results

import vantage
from vantage.data import Source, labels_of, open_source
from vantage.encoders import Momentum, ResNet, Shared
from vantage.evaluate import KNN, LinearCached, evaluate
from vantage.progress import PlainProgress
from vantage.schedules import CosineByStep
from vantage.training.loop import train
from vantage.training.optimizers import AdamW

PATHS = {
    "cifar10-jpg": ("cifar10-jpg.tar.gz#train", "cifar10-jpg.tar.gz#test"),
    "tiny-imagenet-50": ("tiny-imagenet-50.tar.gz#train", "tiny-imagenet-50.tar.gz#val"),
}
RECIPES: dict[str, Callable[[int], vantage.Run]] = {"simclr": vantage.simclr, "moco_v2": vantage.moco_v2}


def main() -> None:
    """Run every set, recipe and seed, and write results/quality.json after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--sets", nargs="+", choices=PATHS, default=list(PATHS))
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--images", type=int, default=0, help="training images, equally many of each class; 0: all")
    parser.add_argument("--epochs", type=int, default=1, help="passes over the training images")
    parser.add_argument("--published", action="store_true", help="the recipe's own optimizer, batch, epochs and stem")
    parser.add_argument("--no-baselines", action="store_true", help="leave out raw pixels and the random encoder")
    parser.add_argument("--join", nargs="+", type=Path, help="only join these results files into one table")
    parser.add_argument("--name", default="quality", help="name of the results file")
    options = parser.parse_args()
    rows: list[dict[str, Any]] = []
    if options.join:
        rows = [row for path in options.join for row in json.loads(path.read_text())["rows"] if "seed" in row]
        write_results(options.name, [*rows, *summary(rows)])
        return
    for seed in options.seeds:
        for name in options.sets:
            for recipe in options.recipes:
                rows.append(measure(options, name, recipe, seed))
                print(rows[-1], flush=True)
                write_results(options.name, [*rows, *summary(rows)])


def measure(options: argparse.Namespace, name: str, recipe: str, seed: int) -> dict[str, Any]:
    """Train once and evaluate: one row. Baselines are evaluated with the first recipe of each seed."""
    folder = Path(tempfile.mkdtemp(prefix="vantage-quality-"))
    train_path, test_path = (f"{options.data}/{path}" for path in PATHS[name])
    if options.images:
        train_path = write_small_images(open_source(train_path), options.images, folder / "train.npz")
        test_path = write_small_images(open_source(test_path), len(open_source(test_path)), folder / "test.npz")
    source, test = open_source(train_path), open_source(test_path)
    run = RECIPES[recipe](32).fit(len(source))
    run = run if options.published else brief(run, options.epochs)
    run = replace(run, seed=seed, data=vantage.Data(train_path))
    try:
        start = time.perf_counter()
        if not train(run, folder / "run", PlainProgress()).finished:
            raise SystemExit("the run was stopped: nothing is judged")
        row: dict[str, Any] = {
            "set": name,
            "recipe": recipe,
            "seed": seed,
            "epochs": run.epochs,
            "batch": run.batch_size,
        }
        row |= {"train images": len(source), "test images": len(test)}
        row |= {"train seconds": round(time.perf_counter() - start), "optimizer": repr(run.optimizer)}
        first = recipe == options.recipes[0] and not options.no_baselines
        for protocol in (KNN(), LinearCached()):
            result = evaluate(folder / "run", protocol, source, test, baselines=first)
            for encoder, outcome in result.outcomes.items():
                row[f"{protocol.name}: {encoder}"] = round(outcome.accuracy.top1, 2)
        return row
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def write_small_images(source: Source, images: int, path: Path) -> str:
    """The first images of each class as 32-pixel arrays (64-pixel ones averaged 2 by 2), written to a file."""
    label, per_class = labels_of(source), images // len(source.classes)
    numbers = torch.cat([(label == n).nonzero()[:per_class, 0] for n in range(len(source.classes))])
    originals = [source.image(int(number)) for number in numbers]
    smaller = [F.interpolate(image[None].float(), (32, 32), mode="area")[0].round().byte() for image in originals]
    pixels = torch.stack(smaller).permute(0, 2, 3, 1).numpy()
    np.savez(path, images=pixels, labels=label[numbers].numpy())
    return str(path)


def brief(run: vantage.Run, epochs: int) -> vantage.Run:
    """The recipe for a schedule of some hundred steps."""
    role = run.encoders
    assert isinstance(role, Shared | Momentum)
    role = replace(role, encoder=replace(role.encoder, backbone=ResNet(18, small=True, stem_stride=2)))
    run = replace(run, encoders=role).rescale(64, epochs)
    if isinstance(role, Momentum):
        return replace(run, learning_rate=CosineByStep(0.03))
    return replace(run, optimizer=AdamW(weight_decay=1e-2), learning_rate=CosineByStep(1e-3))


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean and standard deviation over seeds of every accuracy."""
    groups = dict.fromkeys((row["set"], row["recipe"], row["optimizer"].partition("(")[0]) for row in rows)
    summaries = []
    for name, recipe, optimizer in groups:
        mine = [row for row in rows if (row["set"], row["recipe"]) == (name, recipe)]
        mine = [row for row in mine if row["optimizer"].startswith(optimizer)]
        means: dict[str, Any] = {"summary of": name, "recipe": recipe, "optimizer": optimizer, "seeds": len(mine)}
        for key in dict.fromkeys(key for row in mine for key in row if ": " in key):
            values = [row[key] for row in mine if key in row]
            # A baseline that is the same network, or the same pixels, for each seed has no spread.
            spread = f" ± {statistics.stdev(values):.2f}" if len(set(values)) > 1 else ""
            means[key] = f"{statistics.mean(values):.2f}{spread}"
        summaries.append(means)
    return summaries


if __name__ == "__main__":
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    main()
