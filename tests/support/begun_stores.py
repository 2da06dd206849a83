"""Stores that begin with the untrained network's vectors of all images, on one process or several, for
`training/test_first_rows.py`."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import small_runs
import torch
from torch import Tensor

from vantage import processes
from vantage.data import Source
from vantage.encoding import Work
from vantage.learner import Learner
from vantage.progress import QuietProgress
from vantage.training.images import open_images
from vantage.training.start import first_rows
from vantage.training.start.first_rows import begin

BEGINNING = ("interclr", "interclr_moco", "everything")
"""Recipes whose bank starts from the untrained network's vector of every image."""


def stores_begun(path: str) -> dict[str, Any]:
    """The stores of these recipes with their first rows, and how many images this process read for them, in parts of
    eight, so that there is a part for each."""
    results = {}
    for recipe in BEGINNING:
        run = small_runs.small_run(recipe, path)
        torch.manual_seed(0)
        learner = Learner(run.encoders, run.branches, small_runs.IMAGES, run.seed)
        source, _ = open_images(run.data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(first_rows, "Work", partial(Work, batch_size=8))
            read = _numbers_read(source, patch)
            begin(learner, run, source, QuietProgress())
        results[recipe] = {"stores": learner.stores.state_dict(), "read": len(read)}
    return results


def _numbers_read(source: Source, patch: pytest.MonkeyPatch) -> list[int]:
    """A list to which the source appends the number of every image that is read."""
    numbers: list[int] = []
    image = source.image

    def reading(number: int) -> Tensor:
        numbers.append(number)
        return image(number)

    patch.setattr(source, "image", reading)
    return numbers


def beginning(folder: Path) -> None:
    """Write the stores of this rank."""
    torch.save(stores_begun(str(folder / "images.npz")), folder / f"{processes.rank()}.pt")
