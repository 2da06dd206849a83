"""What the first steps of every recipe gave, made small, on a fixed set: `python tests/golden/make.py` writes
`losses.json` (ten losses in float64) and `curves.json` (loss, gradient norm and rank of 20 steps in float32);
`python tests/golden/make.py --check` writes nothing and compares both on the machine at hand.

Inputs, weights and memories come from NumPy's PCG64; the order of shuffled keys alone comes from torch's CPU generator.
In float64, versions of torch and kinds of processors differ by rounding only. In float32 rounding grows over the steps:
two processors agree within `CURVE_TOLERANCE`, and one processor with itself bit by bit. So `--check`, run where the
file was written, shows whether a change of the code moved a number; the test, run anywhere, shows whether it moved one
by more than rounding does.
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))

import small_recipes

from vantage.encoders import SplitBatchNorm
from vantage.recipes import RECIPES
from vantage.training.run import Run
from vantage.training.watching.monitor import effective_rank

HERE = Path(__file__).resolve().parent
FILE, CURVES_FILE = HERE / "losses.json", HERE / "curves.json"
TOLERANCE = 1e-7
"""Absolute, on losses of about 1 to 40 in float64."""
CURVE_TOLERANCE = 1e-4
"""Of max(1, value), on curves in float32."""
CHECK_TOLERANCE = 1e-6
"""Of max(1, value), on curves in float32 by the machine that wrote them."""
STEPS, CURVE_STEPS = 10, 20
CURVES = ("loss", "gradient norm", "rank")


def curves(run: Run, steps: int, dtype: torch.dtype, first: int | None = None) -> dict[str, list[float]]:
    """Curves of this many steps, or of the `first` of them, with the recipe's own optimizer and rate; keys in groups of
    four. The rank is that of a step's queries, by the monitor's formula; their products are float64, since a singular
    value near 0 is a square root."""
    run = small_recipes.shrink(replace(run, epochs=4), SplitBatchNorm(2))
    learner = small_recipes.learner(run, dtype)
    rows: dict[str, list[float]] = {name: [] for name in CURVES}
    optimizer = run.optimizer.build(learner)
    steps_per_epoch = small_recipes.IMAGES // small_recipes.BATCH
    for step, (views, image) in enumerate(small_recipes.batches(steps, small_recipes.shapes(run), dtype)[:first]):
        for group in optimizer.param_groups:
            # Warm-up of ten epochs would fill so short a run: the rate is that of a run of 20 epochs.
            group["lr"] = run.learning_rate(step, steps_per_epoch, 20)
        learner.before_step(step)
        result = learner(views, image, step)
        optimizer.zero_grad()
        result.loss.backward()
        query = result.watched[0].query.double()
        numbers = (float(result.loss.detach()), _gradient_norm(learner), effective_rank(query.T @ query))
        optimizer.step()
        learner.after_step([result.fresh], step)
        for name, number in zip(CURVES, numbers, strict=True):
            rows[name].append(number)
    return rows


def losses(run: Run) -> list[float]:
    """The first ten losses, in float64."""
    return curves(run, STEPS, torch.float64)["loss"]


def short_curves(run: Run, first: int | None = None) -> dict[str, list[float]]:
    """The first 20 steps, or fewer of them, in float32."""
    return curves(run, CURVE_STEPS, torch.float32, first)


def apart(one: dict[str, list[float]], other: dict[str, list[float]]) -> float:
    """The largest difference between two sets of curves, in units of max(1, value)."""
    pairs = [pair for name in CURVES for pair in zip(one[name], other[name], strict=True)]
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in pairs)


def _gradient_norm(module: torch.nn.Module) -> float:
    gradients: list[Tensor] = [p.grad.flatten() for p in module.parameters() if p.grad is not None]
    return float(torch.linalg.vector_norm(torch.cat(gradients).double()))


def check() -> bool:
    """Print how far the recipes are from what is written down; whether all are near enough."""
    near = [
        _near("losses", TOLERANCE, json.loads(FILE.read_text())["losses"], _loss_apart),
        _near("curves", CHECK_TOLERANCE, json.loads(CURVES_FILE.read_text())["curves"], _curves_apart),
    ]
    return all(near)


def _near(quantity: str, most: float, recording: dict[str, Any], moved_by: Callable[[Run, Any], float]) -> bool:
    runs = {recipe.__name__: recipe(32) for recipe in RECIPES}
    differences = {name: moved_by(run, recording[name]) for name, run in runs.items() if name in recording}
    worst = max(differences, key=lambda name: differences[name])
    equal = f"{sum(not difference for difference in differences.values())} of {len(runs)} bit-equal"
    print(f"{quantity}: largest difference {differences[worst]:.3g} ({worst}), {most:g} allowed; {equal}")
    lines = [
        f"  {name} moved by {difference:.3g}" for name, difference in differences.items() if not difference <= most
    ]
    lines += [f"  {name} is not on both sides" for name in sorted(set(runs) ^ set(recording))]
    print("\n".join(lines), end="\n" if lines else "")
    return not lines


def _loss_apart(run: Run, recording: list[float]) -> float:
    return max(abs(a - b) for a, b in zip(losses(run), recording, strict=True))


def _curves_apart(run: Run, curves: dict[str, list[float]]) -> float:
    return apart(short_curves(run), curves)


def _write(file: Path, **content: Any) -> None:
    origin = {"command": "python tests/golden/make.py", "torch": torch.__version__}
    file.write_text(json.dumps({**origin, **content}, indent=1) + "\n")


def main() -> None:
    """Write what every recipe gave, or compare with it."""
    parser = argparse.ArgumentParser(description="Golden losses and curves of every recipe")
    parser.add_argument("--check", action="store_true", help="compare with the files that are there; write nothing")
    parser.add_argument("recipes", nargs="*", help="write these only, and leave the others as they are")
    torch.set_num_threads(1)
    arguments = parser.parse_args()
    if arguments.check:
        sys.exit(0 if check() else 1)
    runs = {recipe.__name__: recipe(32) for recipe in RECIPES}
    if unknown := set(arguments.recipes) - set(runs):
        parser.error(f"no such recipe: {', '.join(sorted(unknown))}")
    recipes = arguments.recipes or list(runs)
    for file, name, tolerance, measure in (
        (FILE, "losses", TOLERANCE, losses),
        (CURVES_FILE, "curves", CURVE_TOLERANCE, short_curves),
    ):
        before = json.loads(file.read_text())[name] if arguments.recipes else {}
        numbers = before | {recipe: measure(runs[recipe]) for recipe in recipes}
        _write(file, tolerance=tolerance, **{name: {recipe: numbers[recipe] for recipe in runs}})


if __name__ == "__main__":
    main()
