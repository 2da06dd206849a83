"""Folders and files that a system hides or leaves behind, which nobody means by "my images": thumbnails, trash, copies
of a notebook or an archive program. Their images are left out and counted."""

from collections.abc import Mapping
from functools import lru_cache

from vantage.errors import one_line, quantity

__all__ = ["hidden_part", "hidden_words", "is_hidden"]

_LEFT_BEHIND = frozenset(
    (
        "__macosx",  # archives made on macOS
        "@eadir", "@recycle", "#recycle", "#snapshot",  # network storage
        "$recycle.bin", "system volume information",  # Windows
        "lost+found",  # Linux
    )
)  # fmt: skip
"""Names, in lower case, of folders that systems leave beside one's own and that do not begin with a dot."""
_NAMED = 3


def is_hidden(name: str) -> bool:
    """Whether a folder of this name is hidden, as .thumbnails is, or left behind by a system, as __MACOSX is."""
    return (name[:1] == "." and name not in (".", "..")) or name.lower() in _LEFT_BEHIND


def hidden_part(path: str) -> str:
    """The first folder of a path that is hidden, or its file if that begins with a dot; "" if nothing hides it."""
    folder, _, file = path.rpartition("/")
    return _hidden_folder(folder) or (file if file[:1] == "." else "")


def hidden_words(hidden: Mapping[str, int]) -> str:
    """Hidden images, counted by what hides them, such as "12 hidden images (.thumbnails, __MACOSX)"; "" for none."""
    count = sum(hidden.values())
    names = [one_line(name) for name in sorted(hidden, key=lambda name: (-hidden[name], name))]
    names = [*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])]
    return f"{quantity(count, 'hidden image')} ({', '.join(names)})" if count else ""


@lru_cache(4096)  # the names of a set mostly lie in few folders
def _hidden_folder(folder: str) -> str:
    return next(filter(is_hidden, folder.split("/")), "")
