"""Images as a verb opens them: all of them are looked at first."""

from pathlib import Path
from typing import TYPE_CHECKING

from vantage.cli.console import Voice

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.run import Data

__all__ = ["absolute", "look_at"]


def look_at(data: "Data", voice: Voice) -> tuple["Source", str]:
    """The readable images of a place, and a line about the others, with the progress shown.

    Raises `UserError` where there are no images, or too many that are unreadable.
    """
    from vantage.feed import open_images
    from vantage.progress import teller

    progress, started = teller(voice.silent), False

    def advance(done: int, total: int) -> None:
        nonlocal started
        if not started:
            progress.start("looking at the images", total)
            started = True
        progress.advance(done)

    try:
        return open_images(data, advance)
    finally:
        progress.stop()


def absolute(place: str) -> str:
    """A place on this disk from its root, so that a run finds its images from any folder; other places as they are."""
    path, mark, part = (place, "", "") if Path(place).exists() else place.partition("#")
    return f"{Path(path).absolute()}{mark}{part}" if path and Path(path).exists() else place
