"""All images below a folder, in a fixed order; only folders that have changed are listed again.

Hidden folders and files are left out (`hidden.py`), and so are folders of runs, whose pictures are contact sheets,
unless they are the root or above it; their images are counted.

The listing is cached under a name derived from the root's path. For each folder it holds the modification time and the
names in it. Adding, removing or renaming a file changes the modification time of its folder, so a later listing checks
the time of each *folder* and reads again only those that changed: a million images in a thousand folders cost a
thousand checks. A folder that changed within two seconds of being read is not trusted, since its clock may be coarse.
"""

import hashlib
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from vantage.data.decode import is_image_name
from vantage.data.sources.hidden import is_hidden
from vantage.errors import DataError, quantity
from vantage.storage.cache import read_cached, try_write_json

_VERSION = 4
_COARSEST_CLOCK = 2_000_000_000
_UNREAD = frozenset(
    (".heic", ".heif", ".avif", ".jxl", ".dng", ".cr2", ".cr3", ".nef", ".arw", ".raf", ".orf", ".rw2", ".jp2")
)
"""Extensions of photographs that are not read: of phones, and raw files of cameras."""
_OF_A_RUN = frozenset(("settings.json", "settings.py.txt"))
"""Files by which the folder of a run is known: whoever trains in the folder of the images has runs among them."""


@dataclass(frozen=True)
class Listing:
    """The images below a folder."""

    names: tuple[str, ...]
    """Paths of the images relative to the root, with forward slashes, sorted folder by folder."""
    other_files: int
    """How many files do not have the extension of an image."""
    reads: int
    """How many folders had to be read; the others had not changed since they were cached."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """How many of the other files are photographs in a format that is not read, by extension, such as .heic."""
    hidden: Mapping[str, int] = field(default_factory=dict)
    """How many images are left out because they are hidden or belong to a run, by the name of what hides them, such as
    .thumbnails."""
    links: tuple[str, ...] = ()
    """Those of the names that are symbolic links."""


def list_images(root: Path, cache: Path) -> Listing:
    """Every image below `root`, also through links; a folder reached twice (a loop of links) is entered once."""
    file = cache / "listings" / f"{_key(root)}.json"
    record = read_cached(file)
    folders = record["folders"] if isinstance(record, dict) and record.get("version") == _VERSION else {}
    walk = _Walk(root, folders)
    walk.enter()
    if walk.reads or len(walk.fresh) != len(folders):
        try_write_json(file, {"version": _VERSION, "folders": walk.fresh})
    unread, hidden = dict(sorted(walk.unread.items())), dict(walk.hidden)
    return Listing(tuple(walk.names), walk.other_files, walk.reads, unread, hidden, tuple(walk.links))


def unread_words(unread: Mapping[str, int]) -> str:
    """Photographs in formats that are not read, such as "3 photographs (.heic, .nef)"; "" if there are none."""
    count = sum(unread.values())
    return f"{quantity(count, 'photograph')} ({', '.join(unread)})" if count else ""


def unread_ending(name: str) -> str:
    """The extension of a file that is a photograph in a format that is not read, such as .heic; "" for others."""
    ending = name[max(0, name.rfind(".")) :].lower()
    return ending if ending in _UNREAD and not name.rpartition("/")[2].startswith((ending, "._")) else ""


def _key(root: Path) -> str:
    """The name of a listing. It depends on the encoding of file names: PYTHONUTF8=0 reads other names than UTF-8."""
    encoding = sys.getfilesystemencoding()
    digest = hashlib.blake2b(os.fsencode(root.resolve()), digest_size=16)
    digest.update(b"" if encoding == "utf-8" else f"\0{encoding}".encode())
    return digest.hexdigest()


class _Walk:
    """One pass over a tree, with the result of the previous pass."""

    def __init__(self, root: Path, last: dict[str, list]) -> None:
        self.root = os.fspath(root)
        self.last = last
        self.fresh: dict[str, list] = {}
        self.names: list[str] = []
        self.links: list[str] = []
        self.other_files = 0
        self.unread: Counter[str] = Counter()
        self.hidden: Counter[str] = Counter()
        self.reads = 0
        self.identities: set[tuple[int, int]] = set()

    def enter(self) -> None:
        """Walk all folders, depth first, without recursion: trees may be deep. Hidden folders come last: what a link
        shows as well must not be missed."""
        stack, hidden = [""], list[tuple[str, str]]()
        while stack:
            folder = stack.pop()
            if (entry := self.entry_of(folder)) is None:
                continue
            _, images, subfolders, other_files, unread, is_run, links = entry
            prefix = folder + "/" if folder else ""
            if is_run and folder:
                label = f"the run {folder.rpartition('/')[2]}"
                self.hidden.update([label] * len(images))
                hidden += [(prefix + name, label) for name in subfolders]
                continue
            self.names += [prefix + name for name in images if name[0] != "."]
            self.links += [prefix + name for name in links if name[0] != "."]
            self.hidden.update(name for name in images if name[0] == ".")
            self.other_files += other_files
            self.unread.update(unread)
            hidden += [(prefix + name, name) for name in subfolders if is_hidden(name)]
            stack += [prefix + name for name in reversed(subfolders) if not is_hidden(name)]
        for folder, label in hidden:
            self.count_hidden(folder, label)

    def count_hidden(self, top: str, label: str) -> None:
        """Count the images below a hidden folder under a label. Folders that may not be read, such as another user's
        trash, count nothing, and links are not followed: they may lead anywhere."""
        stack = [top]
        while stack:
            folder = stack.pop()
            if os.path.islink(os.path.join(self.root, folder)):
                continue
            try:
                entry = self.entry_of(folder)
            except DataError:
                continue
            if entry is not None:
                _, images, subfolders, *_ = entry
                self.hidden.update([label] * len(images))
                stack += [f"{folder}/{name}" for name in subfolders]

    def entry_of(self, folder: str) -> list | None:
        """What a folder holds: as cached if it has not changed, or read. None if it was removed during the walk, or
        was entered by another name."""
        path = os.path.join(self.root, folder) if folder else self.root
        try:
            state = os.stat(path)
            if (state.st_dev, state.st_ino) in self.identities:
                return None
            self.identities.add((state.st_dev, state.st_ino))
            entry = self.last.get(folder)
            if entry is None or entry[0] != state.st_mtime_ns:
                entry = self.read_folder(path, state.st_mtime_ns)
        except OSError as error:
            if folder and isinstance(error, FileNotFoundError):
                return None
            raise DataError(f"cannot list the folder {path}: {error.strerror}. Check its permissions") from error
        self.fresh[folder] = entry
        return entry

    def read_folder(self, path: str, mtime: int) -> list:
        """Read one folder: modification time, images, folders, the number of other files, how many of these are
        photographs, by extension, whether it is the folder of a run, and which of the images are symbolic links."""
        self.reads += 1
        images, links, subfolders, other_files, unread, of_a_run = [], [], [], 0, Counter[str](), 0
        now = time.time_ns()
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir():
                    subfolders.append(entry.name)
                elif is_image_name(entry.name) and (entry.is_symlink() or entry.is_file()):  # no pipes; dangling links
                    images.append(entry.name)
                    links += [entry.name] * entry.is_symlink()
                else:
                    other_files += 1
                    of_a_run += entry.name in _OF_A_RUN
                    unread.update(filter(None, [unread_ending(entry.name)]))
        reliable_mtime = mtime if now - mtime > _COARSEST_CLOCK else -1
        is_run = of_a_run == len(_OF_A_RUN)
        return [reliable_mtime, sorted(images), sorted(subfolders), other_files, unread, is_run, sorted(links)]
