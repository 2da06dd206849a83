"""A tiny trained run of a recipe, and its images, for tests of what is read out of it."""

from pathlib import Path

from small_runs import small_run, write_images

from vantage.data import Source, open_source
from vantage.encoding import Work
from vantage.training.loop import train

__all__ = ["run_of", "work"]


def run_of(recipe: str, folder: Path, epochs: int = 2) -> tuple[Path, Source]:
    """The folder of a run that was trained for some epochs, and the images it was trained on."""
    path = write_images(folder / "images.npz")
    train(small_run(recipe, path, epochs), folder / recipe)
    return folder / recipe, open_source(path)


def work(batch: int = 64) -> Work:
    """On the CPU."""
    return Work("cpu", batch_size=batch)
