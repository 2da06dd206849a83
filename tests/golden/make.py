"""First ten losses of every recipe, made small, on a fixed set: `python tests/golden/make.py` writes `losses.json`.

Inputs, weights and memories come from NumPy's PCG64; the order of shuffled keys alone comes from torch's CPU generator.
Arithmetic is float64, so versions of torch and kinds of processors differ by rounding only.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import shrunken

from vantage.encoders import SplitBatchNorm
from vantage.recipes import RECIPES
from vantage.training.run import Run

FILE = Path(__file__).resolve().parent / "losses.json"
TOLERANCE = 1e-7
"""Absolute, on losses of about 1 to 40."""
STEPS = 10


def losses(run: Run) -> list[float]:
    """Ten steps with the recipe's own optimizer and rate; keys in groups of four."""
    run = shrunken.shrunk(replace(run, epochs=4), SplitBatchNorm(2))
    learner, found = shrunken.learner(run), []
    optimizer = run.optimizer.build(learner)
    steps_per_epoch = shrunken.IMAGES // shrunken.BATCH
    for step, (views, image) in enumerate(shrunken.batches(STEPS, shrunken.shapes(run))):
        for group in optimizer.param_groups:
            # Warm-up of ten epochs would fill so short a run: the rate is that of a run of 20 epochs.
            group["lr"] = run.learning_rate(step, steps_per_epoch, 20)
        learner.before_step(step)
        result = learner(views, image, step)
        optimizer.zero_grad()
        result.loss.backward()
        optimizer.step()
        learner.after_step([result.fresh], step)
        found.append(float(result.loss.detach()))
    return found


def main() -> None:
    """Write the losses of every recipe."""
    torch.set_num_threads(1)
    told = {recipe.__name__: losses(recipe(32)) for recipe in RECIPES}
    made = {"command": "python tests/golden/make.py", "torch": torch.__version__, "tolerance": TOLERANCE}
    FILE.write_text(json.dumps({**made, "losses": told}, indent=1) + "\n")


if __name__ == "__main__":
    main()
