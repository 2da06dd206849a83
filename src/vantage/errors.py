"""Errors that the user can correct; their messages say what was asked for, what was found, and what to do."""

import os
import re
import sysconfig
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "DataError",
    "TimeTooShort",
    "UnreadableImage",
    "UserError",
    "WriteError",
    "first_line",
    "naming",
    "one_line",
    "quantity",
    "shorten",
    "with_place",
]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

_HERE = os.path.join(os.path.dirname(__file__), "")
_INSTALLED = (_HERE, sysconfig.get_path("stdlib"), "site-packages", "dist-packages")
"""What the files of Vantage, of Python and of libraries have in their paths."""


class UserError(ValueError):
    """An error that the user can correct; the message says what was asked for, what was found, and what to do.

    As text it is always one line, even if it quotes text with line breaks.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class DataError(UserError):
    """A data set that cannot be used in the way requested."""


class WriteError(UserError):
    """A file that could not be written: the disk is full, or its folder is not writable. It ends all work, since later
    results could not be saved either."""


class TimeTooShort(UserError):
    """Too little time to learn anything on this machine; `minutes` would be enough."""

    def __init__(self, message: str, minutes: int) -> None:
        super().__init__(message)
        self.minutes = minutes


class UnreadableImage(DataError):
    """An image that cannot be decoded: `name` identifies it, `reason` says why."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name, reason)
        self.name = name
        self.reason = reason

    def __str__(self) -> str:
        return one_line(f"cannot read the image {self.name}: {self.reason}")


def first_line(error: BaseException, most: int | None = None) -> str:
    """The first line of an error's text, or the name of its type if it has none; at most `most` characters."""
    return (str(error).strip() or type(error).__name__).splitlines()[0][:most]


def with_place(error: BaseException) -> str:
    """An error of someone else's code in one line: its type, the first line of its text, and the last line of that code
    before it was raised, which may have been in Vantage or in a library."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not any(folder in frame.filename for folder in _INSTALLED)]
    place = f" ({(own or frames)[-1].filename}, line {(own or frames)[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {first_line(error)}{place}"


@contextmanager
def naming(what: str) -> Iterator[None]:
    """A context for a user's own part, which may raise anything: its error becomes a `UserError` that begins with
    `what` and says where it was raised. A `UserError` stays as it is."""
    try:
        yield
    except UserError:
        raise
    except Exception as problem:
        raise UserError(f"{what}: {with_place(problem)}") from problem


def one_line(text: str) -> str:
    """The text without line breaks and with ? for other control characters, which file names and messages from
    libraries may contain: a terminal would obey some of them."""
    line = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return _CONTROL.sub("?", line)


def quantity(number: int, what: str, several: str = "") -> str:
    """A number of things in words: 1 image, 2 images; `several` is the plural of a word that takes more than an s."""
    return f"{number:,} {what if number == 1 else several or f'{what}s'}"


def shorten(text: str) -> str:
    """The text; one of more than 60 characters is cut off, and ends in "…"."""
    return text if len(text) <= 60 else f"{text[:57]}…"
