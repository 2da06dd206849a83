"""What should a plan choose? Each choice trains for the same processor time, and is judged on held-out training images.

    python benchmarks/choices.py --data ../shared/data --work /tmp/choices --seconds 150 --seeds 0 1 2

First, the speed of every choice is measured with one thread, in processor time and in turn. A cell then sees as many
images as that speed allows in --seconds, so a busy machine changes nothing. The set has as many images as can be seen
five times, or all. Test splits are not opened: kNN (k = 20) and logistic regression evaluate on the images that the run
held out, and train on at most 10,000 others. Finished cells are kept in --work; a second call computes the missing
ones.
"""

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from candidates import CHOICES
from race import images_of
from timing import earlier_rows, summary, write_results

from vantage import Run
from vantage.data import Source
from vantage.data.order import steps_in
from vantage.encoders import ResNet9
from vantage.encoding import Work
from vantage.evaluate import KNN, LinearCached
from vantage.frozen.encoder import load
from vantage.planning.ladder import Rung
from vantage.planning.sizing import PlanOptions, compose, fit_run
from vantage.planning.speed import measure_speed
from vantage.training.images import held_out_part, open_images, training_part
from vantage.training.loop import train
from vantage.training.run import Data

SETS = {
    "cifar10-jpg": ("cifar10-jpg.tar.gz#train", 0.04),
    "tiny-imagenet-50": ("tiny-imagenet-50.tar.gz#train", 0.09),
    "mnist": ("mnist.npz#train", 0.035),
    "flowers5": ("", 0.2),
}
"""Path of each set, and the share of its images that is held out: about 2,000, and 690 flowers. The flowers have no
split, and are the images that `race.py` trains on."""

BANK = 10_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="folder that holds the sets")
    parser.add_argument("--work", type=Path, required=True, help="folder for speeds, runs and cells")
    parser.add_argument("--seconds", type=float, default=150.0, help="processor time of a cell's training")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--choices", nargs="+", choices=CHOICES, default=list(CHOICES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--side", type=int, choices=(32, 64), default=32, help="of the views, in pixels")
    parser.add_argument("--images", type=int, default=0, help="of a set at most, to see what small sets need")
    parser.add_argument("--collect", action="store_true", help="write results of the cells that are done")
    parser.add_argument("--results", default="choices", help="name of the results file: one for each kind of processor")
    options = parser.parse_args()
    torch.set_num_threads(1)
    (options.work / "cells").mkdir(parents=True, exist_ok=True)
    if not options.collect:
        images_a_second = speeds(options)
        for seed in options.seeds:
            for name in options.sets:
                for choice in options.choices:
                    path = options.work / "cells" / f"{name} {choice} {seed}.json"
                    if not path.exists():
                        cell = train_cell(name, choice, seed, images_a_second[choice], options)
                        path.write_text(json.dumps(cell))
                        print(cell, flush=True)
    rows = [json.loads(path.read_text()) for path in sorted((options.work / "cells").glob("*.json"))]
    rows += earlier_rows(options.results, rows, "set", "recipe", "seed")
    if rows:
        write_results(options.results, [*rows, *summary(rows, "set", "recipe")])


def speeds(options: argparse.Namespace) -> dict[str, float]:
    """Images of every choice per second of processor time: the best of three measurements, stored for later calls."""
    path = options.work / "speeds.json"
    best: dict[str, float] = json.loads(path.read_text()) if path.exists() else {}
    missing = [choice for choice in options.choices if choice not in best]
    for _ in range(3 if missing else 0):
        for choice in missing:
            run, source = composition(options.sets[0], choice, 0, options)
            run = fit_run(PlanOptions(), run, 10_000, 20)
            part = training_part(source, at_most(10_000, source, run.data))
            with patch("time.monotonic", time.process_time):
                step = measure_speed(run, part).step
            best[choice] = max(best.get(choice, 0.0), run.batch_size / step)
    path.write_text(json.dumps(best, indent=2))
    return best


def at_most(images: int, source: Source, data: Data) -> Data:
    """The settings that choose this many training images of a source, or all that may be trained on."""
    return replace(data, max_images=min(images, len(training_part(source, data))))


def composition(name: str, choice: str, seed: int, options: argparse.Namespace) -> tuple[Run, Source]:
    """The run of a choice, not yet fitted to a number of images, and the images of a set."""
    recipe, backbone = CHOICES[choice]
    path, share = SETS[name]
    place = str(options.data.resolve() / path) if path else images_of(options.data, options.work, name)[0].path
    data = Data(place, hold_out=share)
    if options.side == 64 and isinstance(backbone, ResNet9):
        backbone = replace(backbone, stem_stride=2)
    run = compose(PlanOptions(recipe), Rung(backbone, options.side, 0))
    resizing = recipe(options.side).resizing
    if resizing is not None:  # choices say how they grow to 32 pixels
        resizing = replace(resizing, sides=tuple(side * options.side // 32 for side in resizing.sides))
    run = replace(run, resizing=resizing)  # a plan lets the views of every recipe grow
    data = replace(data, resident_side=run.data.resident_side, max_images=options.images)
    run = replace(run, data=data, seed=seed, hardware=replace(run.hardware, accelerator="cpu"))
    return run, open_images(replace(data, hold_out=0.0, max_images=0))[0]


def train_cell(name: str, choice: str, seed: int, rate: float, options: argparse.Namespace) -> dict[str, Any]:
    """One cell: a choice, trained on as many images as its speed allows, and evaluated."""
    run, source = composition(name, choice, seed, options)
    views, available = rate * options.seconds, len(training_part(source, run.data))
    epochs = max(5, math.ceil(views / available))
    images = min(available, round(views / epochs) // run.batch_size * run.batch_size)
    bank = training_part(source, at_most(BANK, source, run.data))
    run = replace(run, data=replace(run.data, max_images=images))
    run = fit_run(PlanOptions(recipe=CHOICES[choice][0]), run, images, epochs)
    with TemporaryDirectory(dir=options.work) as folder:
        start = time.process_time()
        if not train(run, Path(folder) / "run", source=source).finished:
            raise SystemExit("stopped by a signal")
        seconds, encoder = time.process_time() - start, load(Path(folder) / "run")
        work, unseen = Work("cpu", num_workers=1), held_out_part(source, run.data)
        accuracies = {
            f"{protocol.name}: top-1": round(protocol(encoder, bank, unseen, work).accuracy.top1, 2)
            for protocol in (KNN(20), LinearCached())
        }
    about = {"set": name, "recipe": choice, "seed": seed, "images/s": round(rate), "epochs": epochs, "images": images}
    images_seen = epochs * steps_in(images, run.batch_size) * run.batch_size
    return {**about, "images seen": images_seen, "processor seconds": round(seconds), **accuracies}


if __name__ == "__main__":
    main()
