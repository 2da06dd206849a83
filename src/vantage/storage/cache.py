"""The cache: everything in it can be made again, so losing it costs time and nothing else.

The folder is `$VANTAGE_CACHE`, else `$XDG_CACHE_HOME/vantage`, else `~/.cache/vantage`. It may be deleted at any time.
`cache_size` keeps it below a bound.
"""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vantage.errors import UserError
from vantage.storage.cache_size import given_bound
from vantage.storage.files import atomic_file
from vantage.storage.strangers import check_file

__all__ = ["cache_folder", "digest", "hash_of", "read_cached", "read_json", "try_write", "try_write_json"]


def cache_folder() -> Path:
    """The cache's folder, which need not exist yet. Raises `UserError`, before any work, if `VANTAGE_CACHE_SIZE` is no
    size, or if no folder is named and the user has no home."""
    given_bound()
    if path := os.environ.get("VANTAGE_CACHE"):
        return Path(path)
    if root := os.environ.get("XDG_CACHE_HOME"):
        return Path(root, "vantage")
    if (home := os.path.expanduser("~")) == "~":  # as of a container's user that the system does not know
        raise UserError("you have no home folder, in which the cache would be: name a folder, VANTAGE_CACHE=FOLDER")
    return Path(home, ".cache", "vantage")


def hash_of(facts: Iterable[bytes | str]) -> str:
    """32 hexadecimal digits that depend on every fact, text as UTF-8, and on where one ends and the next begins."""
    digest = hashlib.blake2b(digest_size=16)
    for fact in facts:
        data = fact.encode() if isinstance(fact, str) else fact
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def digest(facts: Any) -> str:
    """16 hexadecimal digits that identify plain facts, in whatever order their keys are. Raises `ValueError` for
    numbers that are not finite."""
    return hash_of([json.dumps(facts, sort_keys=True, allow_nan=False)])[:16]


def read_json(path: Path) -> Any:
    """The content of a JSON file, or None if there is none, it is damaged, or it is too large."""
    try:
        check_file(path)
        return json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError, UserError):
        return None


def read_cached(path: Path) -> Any:
    """What `try_write_json` kept, or None if there is nothing or any byte has changed, so that it is made again."""
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
        return json.loads(content) if digest.decode() == hash_of([content]) else None
    except (OSError, ValueError, RecursionError):
        return None


def try_write(path: Path, content: bytes) -> None:
    """Keep bytes in the cache. A cache that cannot be written (read-only, full) costs time later but is no error."""
    try:
        with atomic_file(path) as file:
            file.write(content)
    except OSError:
        pass


def try_write_json(path: Path, content: Any) -> None:
    """Keep JSON in the cache, after a line with its hash, if it can be written; `read_cached` reads it."""
    data = json.dumps(content, separators=(",", ":")).encode()
    try_write(path, hash_of([data]).encode() + b"\n" + data)
