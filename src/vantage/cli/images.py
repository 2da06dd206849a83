"""Images as a verb opens them: all of them are looked at first."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vantage.cli.console import Console

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.encoding import Work
    from vantage.training.run import Data

__all__ = ["absolute", "look_at", "opened", "work_of"]


def look_at(data: "Data", console: Console) -> tuple["Source", str]:
    """The readable images of a place, and a line about the others, with the progress shown.

    Raises `UserError` where there are no images, or too many that are unreadable.
    """
    from vantage.progress import counting, progress_for
    from vantage.training.feed import open_images

    with counting(progress_for(console.silent), "looking at the images") as advance:
        return open_images(data, advance)


def opened(place: str, asked: Mapping[str, Any], console: Console) -> "Source":
    """The readable images of a place, as the options `on_bad_image` and `workers` have it; what was found is told."""
    from vantage.training.run import Data

    source, told = look_at(Data(place, asked["on_bad_image"], asked["workers"]), console)
    console.note(told)
    return source


def work_of(asked: Mapping[str, Any], console: Console, batch: int = 256) -> "Work":
    """What the options `device` and `workers` say to compute with."""
    from vantage.encoding import Work
    from vantage.progress import progress_for

    return Work(
        device=asked["device"], batch_size=batch, num_workers=asked["workers"], progress=progress_for(console.silent)
    )


def absolute(place: str) -> str:
    """A place on this disk from its root, so that a run finds its images from any folder; other places as they are."""
    path, mark, part = (place, "", "") if Path(place).exists() else place.partition("#")
    return f"{Path(path).absolute()}{mark}{part}" if path and Path(path).exists() else place
