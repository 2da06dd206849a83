"""All images below a folder, in a fixed order, listed again only where a folder has changed.

The listing is kept in the cache, under a name made of the root's path. For each folder it holds the time of its last
change and the names in it. Adding, removing or renaming a file changes the time of its folder, so a later listing asks
each *folder* for its time and reads again only those that changed; a million images in a thousand folders cost a
thousand questions. A folder that changed within two seconds of being read is not trusted: its clock may be that coarse.
"""

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path

from vantage.data.decode import is_image_name
from vantage.errors import DataError
from vantage.storage.cache import read_json, try_write_json

_VERSION = 1
_COARSEST_CLOCK = 2_000_000_000


@dataclass(frozen=True)
class Listing:
    """What lies below a folder."""

    names: tuple[str, ...]
    """Paths of the images relative to the root, with forward slashes, sorted folder by folder."""
    ignored: int
    """How many files were no images by their ending."""
    folders_read: int
    """How many folders had to be read; the others were as the cache knew them."""


def list_images(root: Path, cache: Path) -> Listing:
    """Every image below `root`, through links too; a folder reached twice (a loop of links) is entered once."""
    place = cache / "listings" / f"{hashlib.blake2b(os.fsencode(root.resolve()), digest_size=16).hexdigest()}.json"
    known = read_json(place)
    folders = known["folders"] if isinstance(known, dict) and known.get("version") == _VERSION else {}
    walk = _Walk(root, folders)
    walk.enter("")
    if walk.read or len(walk.fresh) != len(folders):
        try_write_json(place, {"version": _VERSION, "folders": walk.fresh})
    return Listing(tuple(walk.names), walk.ignored, walk.read)


class _Walk:
    """One pass over a tree, with what is known from the pass before."""

    def __init__(self, root: Path, known: dict[str, list]) -> None:
        self.root = os.fspath(root)
        self.known = known
        self.fresh: dict[str, list] = {}
        self.names: list[str] = []
        self.ignored = 0
        self.read = 0
        self.entered: set[tuple[int, int]] = set()

    def enter(self, top: str) -> None:
        """Walk all folders from `top` on, depth first, without recursion: trees may be deep."""
        waiting = [top]
        while waiting:
            folder = waiting.pop()
            path = os.path.join(self.root, folder) if folder else self.root
            try:
                state = os.stat(path)
                if (state.st_dev, state.st_ino) in self.entered:
                    continue
                self.entered.add((state.st_dev, state.st_ino))
                entry = self.known.get(folder)
                if entry is None or entry[0] != state.st_mtime_ns:
                    entry = self.look(path, state.st_mtime_ns)
            except OSError as error:
                if not folder or not isinstance(error, FileNotFoundError):
                    raise DataError(
                        f"cannot list the folder {path}: {error.strerror}. Check its permissions"
                    ) from error
                continue  # it went away while we walked
            _, images, inner, ignored = self.fresh[folder] = entry
            prefix = folder + "/" if folder else ""
            self.names += [prefix + name for name in images]
            self.ignored += ignored
            waiting += [prefix + name for name in reversed(inner)]

    def look(self, path: str, changed: int) -> list:
        """Read one folder: time of change, images, folders, and the number of other files."""
        self.read += 1
        images, inner, ignored = [], [], 0
        now = time.time_ns()
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir():
                    inner.append(entry.name)
                elif is_image_name(entry.name) and (
                    entry.is_symlink() or entry.is_file()
                ):  # no pipes; dangling links show
                    images.append(entry.name)
                else:
                    ignored += 1
        trusted = changed if now - changed > _COARSEST_CLOCK else -1
        return [trusted, sorted(images), sorted(inner), ignored]
