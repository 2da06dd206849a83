"""For a path that does not exist: the entry beside it whose name is most similar."""

import difflib
import os
from pathlib import Path

__all__ = ["near_path"]


def near_path(path: Path, holds: str = "") -> str:
    """`; did you mean X?` for the entry beside the path whose name is most similar; empty if none is similar, and
    `: it is a folder` for a folder.

    With `holds`, only for folders that hold a file of that name. Raises nothing, even if the folder cannot be read.
    """
    if not holds and path.is_dir():
        return ": it is a folder"
    try:
        beside = [entry.name for entry in os.scandir(path.parent) if not holds or Path(entry.path, holds).is_file()]
    except OSError:
        return ""
    alike = [name for name in beside if name.lower() == path.name.lower()]
    near = alike or difflib.get_close_matches(path.name, beside, 1, 0.75)
    return f"; did you mean {path.parent / near[0]}?" if near else ""
