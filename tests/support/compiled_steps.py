"""Steps of compiled runs, compared with those of runs that are not. A process of its own, since the shape checks of the
tests cannot be compiled.

    python tests/support/compiled_steps.py IMAGES RECIPE …
"""

import sys
from dataclasses import replace
from functools import partial, partialmethod

import torch
from small_runs import small_run
from torch import nn
from torch._dynamo.utils import counters

from vantage.composition.codec import allowing
from vantage.progress import QuietProgress
from vantage.training.computing.compiling import is_one_graph
from vantage.training.computing.launch import launch
from vantage.training.images import open_images
from vantage.training.run import Run
from vantage.training.session import Session
from vantage.views import ProgressiveResizing

STEPS = 6  # an epoch


def losses(run: Run) -> list[float]:
    """The losses of the steps of an epoch."""
    fabric, run = launch(run, QuietProgress())
    session = Session(run, fabric, open_images(run.data)[0])
    batches = session.feed.batches(0, 0)
    return [
        float(session.step(batch.to(fabric.device), step)) for step, batch in zip(range(STEPS), batches, strict=True)
    ]


def check(run: Run, graphs: int | None) -> None:
    """Forward and backward are whole graphs, as many as stated, and the losses are those of the run as it is."""
    counters.clear()
    compiled = losses(replace(run, hardware=replace(run.hardware, compile=True)))
    count = counters["stats"]["unique_graphs"]
    assert not counters["graph_break"], (run.recipe, counters["graph_break"])
    assert count == graphs if graphs else count > 0, (run.recipe, count)
    torch.testing.assert_close(torch.tensor(compiled), torch.tensor(losses(run)))


def main() -> None:
    """The recipes that are named, and views of several sizes under the first."""
    setattr(nn.Module, "compile", partialmethod(nn.Module.compile, backend="aot_eager"))  # noqa: B010
    torch.compile = partial(torch.compile, backend="aot_eager")
    images, *recipes = sys.argv[1:]
    with allowing("tiny"):
        for recipe in recipes:
            run = small_run(recipe, images)
            check(run, graphs=1 if is_one_graph(run.branches) else None)
        growing = replace(small_run(recipes[0], images, epochs=1), resizing=ProgressiveResizing((8, 12)))
        check(growing, graphs=3)  # one for each size


if __name__ == "__main__":
    main()
