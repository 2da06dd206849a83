"""Stores that begin with the untrained network's vectors of all images, on one process or several, for
`training/test_first_rows.py`."""

from pathlib import Path
from typing import Any

import small_runs
import torch

from vantage import processes
from vantage.learner import Learner
from vantage.progress import QuietProgress
from vantage.training.feed import open_images
from vantage.training.start.first_rows import begin

BEGINNING = ("interclr", "interclr_moco", "everything")
"""Recipes whose bank starts from the untrained network's vector of every image."""


def stores_begun(path: str) -> dict[str, Any]:
    """The stores of these recipes with their first rows."""
    results = {}
    for recipe in BEGINNING:
        run = small_runs.small_run(recipe, path)
        torch.manual_seed(0)
        learner = Learner(run.encoders, run.branches, small_runs.IMAGES, run.seed)
        begin(learner, run, open_images(run.data)[0], QuietProgress())
        results[recipe] = learner.stores.state_dict()
    return results


def beginning(folder: Path) -> None:
    """Write the stores of this rank."""
    torch.save(stores_begun(str(folder / "images.npz")), folder / f"{processes.rank()}.pt")
