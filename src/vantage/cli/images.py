"""Images as a verb opens them: all of them are looked at first."""

from typing import TYPE_CHECKING

from vantage.cli.console import Voice

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.run import Data

__all__ = ["look_at"]


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
