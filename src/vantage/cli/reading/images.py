"""The images that a command names: opening them, and paths that hold from any folder."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from vantage.cli.printing.console import Console

if TYPE_CHECKING:
    from vantage.data import Source
    from vantage.training.run import Data

__all__ = ["absolute", "exists_on_disk", "from_any_folder", "look_at"]

_PATHS = ("--init", "--learned")
"""Options of `pretrain` whose values are paths, apart from those that the settings of a run keep."""


def look_at(data: "Data", console: Console, together: bool = False, trains: bool = True) -> "tuple[Source, str]":
    """Open the readable images that `data` names, and describe the others in a line; shows progress. With `together`,
    all processes call this at the same time and share the work; `trains` says what the images are for (`open_images`).

    Raises `UserError` if there are no images, if too many are unreadable, or if processes have different ones.
    """
    from vantage.progress import counting
    from vantage.training.folder.same_run import check_same_images
    from vantage.training.images import open_images

    with counting(console.progress(), "checking the images") as advance:
        source, line = open_images(data, advance, together=together, trains=trains)
    if together:
        check_same_images(source)
    return source, line


def absolute(path: str) -> str:
    """Make a path on this disk absolute, so that a run finds its images from any folder; other names are unchanged."""
    file, mark, part = (path, "", "") if Path(path).exists() else path.partition("#")
    return f"{Path(file).absolute()}{mark}{part}" if file and exists_on_disk(file) else path


def from_any_folder(words: Iterable[str], folder: str = "") -> list[str]:
    """The words after `pretrain` in a command that was given in `folder`, or if omitted in the current one, with the
    paths in them made absolute."""
    result, left = list[str](), iter(words)
    for word in left:
        name, equals, value = word.partition("=")
        path = value if equals or name not in _PATHS else next(left, "")
        result += [name, str(Path(folder, path).absolute())] if name in _PATHS else [word]
    return result


def exists_on_disk(path: str) -> bool:
    """Whether the path exists on this disk; for a pattern with braces, whether its first file does."""
    if Path(path).exists() or "{" not in path:
        return Path(path).exists()
    from vantage.data.sources.shards import expand_braces

    return Path(expand_braces(path)[0]).exists()
