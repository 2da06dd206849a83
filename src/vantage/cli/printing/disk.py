"""How much of a disk something takes, in words."""

import os
from pathlib import Path

__all__ = ["bytes_below", "size_in_words"]


def size_in_words(count: int) -> str:
    """Bytes for people, in powers of ten."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1000:,.1f} KB"


def bytes_below(folder: Path) -> int:
    """Bytes of all files in a folder and below it; 0 if it does not exist."""
    paths = (os.path.join(root, name) for root, _, names in os.walk(folder) for name in names)
    return sum(os.lstat(path).st_size for path in paths)
