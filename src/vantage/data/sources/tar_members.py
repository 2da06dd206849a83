"""The images among the members of a plain tar: where each lies, and what is left out.

A hard link is a second name of an earlier member. A symbolic link is read as the member that it leads to, which may
come later or be a link itself. Links to what is not in the tar are counted: nothing outside it is opened.
"""

import posixpath
import tarfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO

from vantage.data.decode import is_image_name
from vantage.data.sources.listing import unread_ending
from vantage.data.sources.shards.members import Content, check_end

__all__ = ["TarMembers", "links_words", "read_members"]

_LONGEST_CHAIN = 40
"""Links that may follow each other, as in Linux."""

_Place = tuple[int, int]


@dataclass
class TarMembers:
    """The members of a tar."""

    places: dict[str, _Place] = field(default_factory=dict)
    """Offset and size of each image by its name. Of two members with one name the later counts, as when it is
    unpacked."""
    other_files: int = 0
    """How many files are no images."""
    labels: int = 0
    """How many of these are labels of a shard."""
    unread: Counter[str] = field(default_factory=Counter)
    """How many of the other files are photographs in a format that is not read, by extension."""
    links: int = 0
    """How many of the other files are images that are links to what is not in the tar."""


def read_members(tar: IO[bytes], size: int) -> TarMembers:
    """The members of an open tar of `size` bytes without compression. Raises an error of `tarfile` or `DataError` if it
    is damaged."""
    found, targets = TarMembers(), dict[str, str]()
    for member in _headers(tar, size):
        name = member.name.removeprefix("./")
        place = _place(member)
        if member.islnk():
            earlier = member.linkname.removeprefix("./")
            place, target = found.places.get(earlier), targets.get(earlier, earlier)
        else:
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), member.linkname))
        if is_image_name(name.rpartition("/")[2]) and (place or member.islnk() or member.issym()):
            found.places.pop(name, None)
            targets.pop(name, None)
            if place:
                found.places[name] = place
            else:
                targets[name] = target
        elif not member.isdir():
            found.other_files += 1
            found.labels += name.endswith(".cls")
            found.unread.update(filter(None, [unread_ending(name)]))
    _follow(targets, found, tar, size)
    return found


def links_words(links: int) -> str:
    """Images that are links to what is not in their tar; "" for none."""
    many = f"{links:,} images are links to files that are" if links > 1 else "1 image is a link to a file that is"
    return f"{many} not in the tar" if links else ""


def _headers(tar: IO[bytes], size: int) -> Iterator[tarfile.TarInfo]:
    """The header of each member, in order."""
    tar.seek(0)
    with tarfile.open(fileobj=tar, mode="r:") as members:
        for member in members:
            yield member
            members.members.clear()  # pyright: ignore[reportAttributeAccessIssue]  # it would keep every header
        end = members.offset
    check_end(Content(tar.fileno()), end, size)  # `tarfile` stops silently at a damaged header


def _place(member: tarfile.TarInfo) -> _Place | None:
    return (member.offset_data, member.size) if member.isreg() and not member.issparse() else None


def _follow(targets: Mapping[str, str], found: TarMembers, tar: IO[bytes], size: int) -> None:
    """Find the images that links lead to: other images, or files whose names do not end as those of images."""
    ends = {name: _end(target, targets) for name, target in targets.items()}
    missing = set(ends.values()) - found.places.keys() - targets.keys()
    places = found.places | _places_of(missing, tar, size)
    for name, end in ends.items():
        if end in places:
            found.places[name] = places[end]
        else:
            found.other_files += 1
            found.links += 1


def _end(target: str, targets: Mapping[str, str]) -> str:
    """What a chain of links leads to."""
    for _ in range(_LONGEST_CHAIN):
        if target not in targets:
            return target
        target = targets[target]
    return target


def _places_of(names: Collection[str], tar: IO[bytes], size: int) -> dict[str, _Place]:
    """The places of the files of these names, by another pass over the headers: they are not kept, and few tars have
    links."""
    if not names:
        return {}
    every = ((member.name.removeprefix("./"), _place(member)) for member in _headers(tar, size))
    return {name: place for name, place in every if place and name in names}
