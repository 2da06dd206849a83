"""Where a path leads nowhere: what lies beside it under nearly its name."""

import difflib
import os
from pathlib import Path

__all__ = ["near_path"]


def near_path(path: Path, holds: str = "") -> str:
    """`; did you mean X?` for the entry of its folder whose name is nearest; empty where none is near.

    With `holds`, only for folders that hold a file of that name. Raises nothing, whatever may not be read.
    """
    try:
        beside = [entry.name for entry in os.scandir(path.parent) if not holds or Path(entry.path, holds).is_file()]
    except OSError:
        return ""
    alike = [name for name in beside if name.lower() == path.name.lower()]
    near = alike or difflib.get_close_matches(path.name, beside, 1, 0.75)
    return f"; did you mean {path.parent / near[0]}?" if near else ""
