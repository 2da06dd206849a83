"""Where things that can be made again are kept: listings, indexes, unpacked tars, scans, decoded sets.

The folder is `$VANTAGE_CACHE`, else `$XDG_CACHE_HOME/vantage`, else `~/.cache/vantage`. It may be deleted at any time.
"""

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def cache_folder() -> Path:
    """The folder for what can be made again; it need not exist yet."""
    if stated := os.environ.get("VANTAGE_CACHE"):
        return Path(stated)
    root = os.environ.get("XDG_CACHE_HOME")
    return (Path(root) if root else Path.home() / ".cache") / "vantage"


@contextmanager
def written_whole(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears at `path` complete or not at all, though several processes write it at once.

    Who may read it is what the process's umask says, as for a file that `open` makes. A link is followed; what is no
    file, such as a pipe, is written to as it is.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file() and not path.is_dir():  # a rename would put a file in its place
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def read_json(path: Path) -> Any:
    """What a cached JSON file holds, or None when there is none or it is damaged: then it is made again."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def try_write_json(path: Path, content: Any) -> None:
    """Keep JSON in the cache. A cache that cannot be written (read-only, full) costs time later, but is no failure."""
    try:
        with written_whole(path) as file:
            file.write(json.dumps(content, separators=(",", ":")).encode())
    except OSError:
        pass
