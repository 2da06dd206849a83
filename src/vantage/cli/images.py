"""Images as a verb opens them: looked at first, with what was found told."""

from typing import TYPE_CHECKING

from vantage.cli.console import Voice

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.run import Data

__all__ = ["look_at"]


def look_at(data: "Data", voice: Voice) -> "Source":
    """The readable images of a place. Raises `UserError` where there are none, or too many that are unreadable."""
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
        source, told = open_images(data, advance)
    finally:
        progress.stop()
    voice.note(told)
    return source
