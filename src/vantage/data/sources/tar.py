"""Images in a tar, read in place, without unpacking. Hidden ones are left out (`hidden.py`).

The tar's headers are read once; the offset of each image is cached, under a name derived from the tar's path, size and
modification time. A compressed tar has no offsets: it is decompressed once to a plain tar in the cache (CIFAR-10's
19 MB become 92 MB, in a second), which later runs reuse.

h, w: height and width in pixels
"""

import bz2
import errno
import gzip
import hashlib
import lzma
import os
import shutil
import tarfile
import zlib
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from jaxtyping import UInt8
from torch import Tensor

from vantage.data.decode import MAX_PIXELS, decode
from vantage.data.sources.file_stamp import FileStamp
from vantage.data.sources.hidden import hidden_part, hidden_words
from vantage.data.sources.listing import unread_words
from vantage.data.sources.names import Names, classes_from, parent
from vantage.data.sources.source import read_some, stamp_of_files
from vantage.data.sources.tar_members import links_words, read_members
from vantage.errors import DataError, UnreadableImage, quantity
from vantage.storage.cache import hash_of, read_cached, try_write_json
from vantage.storage.cache_size import in_use, make_room
from vantage.storage.files import atomic_file

_VERSION = 5
_OPENERS = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
_DAMAGED = (EOFError, OSError, zlib.error, lzma.LZMAError, tarfile.TarError, UnicodeError)


class Tar:
    """The images of a tar, or of one folder in it; if they lie in several folders, each folder is a class. Labels in
    the layout of shards are not read (`label_files` counts them)."""

    def __init__(self, path: Path, cache: Path, part: str = "", max_pixels: int = MAX_PIXELS) -> None:
        self.path, self._cache, self.max_pixels = path.absolute(), cache.absolute(), max_pixels
        self._file: IO[bytes] | None = None
        file = self._open()
        is_copy = not os.path.samestat(os.fstat(file.fileno()), os.stat(path))
        self._stamp = None if is_copy else FileStamp.now(path)  # nobody changes a copy in the cache
        index = _index(file, path, cache)
        names, offsets, sizes = index["names"], index["offsets"], index["sizes"]
        self.other_files, self.unread, self.label_files = index["ignored"], index["unread"], index["labels"]
        self.dangling = index["links"]
        folder = folder_named(names, part, str(path)) + "/" if part else ""
        members = [number for number, name in enumerate(names) if name.startswith(folder)]
        hiding = {number: hidden_part(names[number].removeprefix(folder)) for number in members}
        self.hidden = Counter(filter(None, hiding.values()))
        shown = [number for number in members if not hiding[number]]
        order = sorted(shown, key=lambda number: (parent(names[number]), names[number]))
        if not order and self.hidden:
            raise DataError(
                f"no images in {path}, except {hidden_words(self.hidden)}, which are left out. To use them, write"
                " their folder after #"
            )
        if not order:
            todo = "Name a tar with image files in it"
            if self.unread:
                todo = f"{unread_words(self.unread)} among them can be converted to JPEG, which is read"
            if self.dangling:
                todo = f"{links_words(self.dangling)}: pack the files themselves, with `tar --dereference`"
            raise DataError(f"no images in {path}: found {quantity(self.other_files, 'other file')}. {todo}")
        image_names = [names[number] for number in order]
        self.classes, self._labels = classes_from(image_names)
        self._names = Names(image_names)
        self._offsets = np.array(offsets, dtype=np.int64)[order]
        self._sizes = np.array(sizes, dtype=np.int64)[order]

    def __len__(self) -> int:
        return len(self._names)

    def __getstate__(self) -> dict[str, Any]:
        """The state without the open tar: another process opens its own."""
        return self.__dict__ | {"_file": None}

    def __del__(self) -> None:
        if file := getattr(self, "_file", None):
            file.close()

    def _open(self) -> IO[bytes]:
        """The tar, or its decompressed copy in the cache, which stays there as long as it is open."""
        file = self._file = self._file or _plain(self.path, self._cache)
        return file

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return decode(self.file_bytes(number), self.name(number), self.max_pixels)

    def file_bytes(self, number: int) -> bytes:
        """The bytes of one member; raises `UnreadableImage` if the tar cannot be read there, `DataError` if it is not
        the file that was indexed."""
        if self._stamp is not None:
            self._stamp.check()
        try:
            file = self._open()
            # Read at an offset, without moving the position: threads and forked workers may share the descriptor.
            return os.pread(file.fileno(), int(self._sizes[number]), int(self._offsets[number]))
        except OSError as error:
            raise UnreadableImage(self.name(number), error.strerror or str(error)) from error

    def label(self, number: int) -> int | None:
        """The index of the image's class, or None."""
        return None if self._labels[number] < 0 else int(self._labels[number])

    def name(self, number: int) -> str:
        """The member's path in the tar."""
        return self._names[number]

    def fingerprint(self) -> str:
        """A hash of all names and sizes, and of the bytes of at most 32 images evenly spaced."""
        facts = [*self._names.facts(), self._sizes.tobytes()]
        return hash_of([*facts, *read_some(len(self), self.file_bytes)])

    def stamp(self) -> str:
        """A hash of the size and modification time of the tar."""
        return stamp_of_files([self.path])


def folder_named(names: list[str], part: str, path: str) -> str:
    """The folder `part` among those of the names, the one nearest to the top if there are several.

    Raises a `DataError` that lists the existing folders, or those that the part could mean.
    """
    part = part.strip("/")
    folders: set[str] = set()
    for folder in {parent(name) for name in names}:
        while folder and folder not in folders:
            folders.add(folder)
            folder = parent(folder)
    matches = sorted((folder.count("/"), folder) for folder in folders if folder == part or folder.endswith("/" + part))
    nearest = [folder for depth, folder in matches if depth == matches[0][0]]
    if len(nearest) != 1:
        shallow = sorted(folders, key=lambda folder: (folder.count("/"), folder))[:8]
        advice = f"it could be {' or '.join(nearest)}" if nearest else f"its folders are {', '.join(shallow) or 'none'}"
        raise DataError(f"{path}#{part} does not name one folder of images: {advice}. Write one of them after #")
    return nearest[0]


def _key(path: Path) -> str:
    """A name for cached files that are derived from a file in its present state."""
    state = path.stat()
    facts = f"{path.resolve()}|{state.st_size}|{state.st_mtime_ns}"
    return hashlib.blake2b(facts.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()


def _plain(path: Path, cache: Path) -> IO[bytes]:
    """The tar itself, or its decompressed copy in the cache, opened for reading."""
    with open(path, "rb") as file:
        magic = file.read(6)
    opener = next((opener for start, opener in _OPENERS if magic.startswith(start)), None)
    if opener is None:
        return path.open("rb")
    copy = cache / "tars" / f"{_key(path)}.tar"
    with suppress(OSError):
        return in_use(copy)
    try:
        with opener(path, "rb") as archive, atomic_file(copy) as file:
            _unpack(archive, file, copy.parent)
        unpacked = in_use(copy)
        make_room(copy, copy.stat().st_size)  # its size is known only now
        return unpacked
    except _DAMAGED as error:
        raise DataError(
            f"cannot decompress {path} into {copy.parent}: {error or 'it is cut short'}. "
            "Check the file, and that the disk has room for its contents (or set VANTAGE_CACHE to another folder)"
        ) from error


def _unpack(archive: gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile, file: IO[bytes], folder: Path) -> None:
    """Copy the decompressed content, which may be more than a disk holds: a tenth of the free space is always left."""
    free = shutil.disk_usage(folder).free * 9 // 10
    while piece := archive.read(1 << 20):
        free -= len(piece)
        if free < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        file.write(piece)


def _index(tar: IO[bytes], path: Path, cache: Path) -> dict[str, Any]:
    """Names, offsets and sizes of the images in an open tar without compression, and the numbers of what is left out
    (`TarMembers`). They are cached under the name of the tar."""
    file = cache / "tars" / f"{_key(path)}.json"
    record = read_cached(file)
    if isinstance(record, dict) and record.get("version") == _VERSION:
        return record
    try:
        found = read_members(tar, os.fstat(tar.fileno()).st_size)
    except (*_DAMAGED, ValueError, OverflowError) as error:  # from sizes that no file has
        raise DataError(f"cannot read {path} as a tar: {error}. Check the file") from error
    offsets, sizes = ([place[which] for place in found.places.values()] for which in (0, 1))
    index = {"version": _VERSION, "names": list(found.places), "offsets": offsets, "sizes": sizes}
    index |= {"ignored": found.other_files, "unread": dict(found.unread), "labels": found.labels, "links": found.links}
    try_write_json(file, index)
    return index
