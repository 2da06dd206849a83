"""Files that a set names twice, by the same path or through links, so that their images would count twice."""

import os
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from vantage.data.sources.names import last_folder

__all__ = ["files_below", "linked_twice", "listed_twice", "named_twice", "other_classes", "twice_words"]

_NAMED = 3


def named_twice(paths: Sequence[str], states: Sequence[Hashable]) -> dict[int, int]:
    """The number of each path that leads to the same file as an earlier one, with the number of that one. `states` are
    sizes and times: only paths with equal ones are resolved, which asks the file system for every folder above."""
    alike = Counter(states)
    first: dict[str, int] = {}
    where = [(n, os.path.realpath(path)) for n, path in enumerate(paths) if alike[states[n]] > 1]
    return {n: first[file] for n, file in where if first.setdefault(file, n) != n}


def listed_twice(root: Path, names: Sequence[str]) -> dict[int, int]:
    """The number of each name, relative to `root` or absolute, that leads to the same file as an earlier one, also
    through a link, with the number of that one."""
    first: dict[str, int] = {}
    files = (os.path.realpath(file) if os.path.islink(file) else file for file in files_below(root, names))
    return {n: first[file] for n, file in enumerate(files) if first.setdefault(file, n) != n}


def linked_twice(root: Path, names: Sequence[str], links: Sequence[str]) -> dict[str, str]:
    """Each name below `root` of a file to which another name leads by one of `links`, those of the names that are
    symbolic links, with the name that counts: the file's own, or else the first link to it. A file directly in `root`,
    which has no class, counts by the first link in a folder."""
    files = {name: os.path.realpath(root / name) for name in links}
    names_of = {file: list[str]() for file in files.values()}
    for name, file in zip(names, files_below(root, names), strict=True) if links else ():
        names_of.get(files.get(name, file), []).append(name)
    first = {file: min(each, key=lambda name: ("/" not in name, name in files)) for file, each in names_of.items()}
    return {name: first[file] for file, each in names_of.items() for name in each if name != first[file]}


def files_below(root: Path, names: Iterable[str]) -> Iterator[str]:
    """The path of each file, named relative to `root` or absolutely, by which two names of it are equal, unless one is
    itself a link: only links among folders are followed, which asks the file system once for each folder."""

    @cache
    def real(folder: str) -> str:
        try:
            return os.path.join(os.path.realpath(root / folder), "")
        except ValueError:  # a list may contain names that no folder can have
            return folder

    for name in names:
        start = name.rfind("/") + 1
        yield real(name[:start]) + name[start:]


def twice_words(pairs: Sequence[tuple[str, str]]) -> str:
    """Files that are named twice, each by both names, such as "1 file that is named twice counts once: a.tar (again as
    b.tar)"; "" if there are none."""
    if not pairs:
        return ""
    name, again = pairs[0]
    count = f"{len(pairs):,} files that are named twice count once, such as"
    count = count if len(pairs) > 1 else "1 file that is named twice counts once:"
    return f"{count} {name}" + (f" (again as {again})" if again != name else "")


def other_classes(pairs: Sequence[tuple[str, str]]) -> str:
    """The classes that do not count since they are those of second names, in words; "" if there are none. `pairs` are
    both names of each file that has two, whose folders are the classes."""
    classes = [(last_folder(name), last_folder(again)) for name, again in pairs]
    lost = [again for name, again in classes if again not in ("", name)]
    if not lost:
        return ""
    some = sorted(set(lost))
    lie = "lie in other classes" if len(lost) > 1 else "lies in another class"
    return (
        f"{len(lost):,} of the second names {lie} ({', '.join(some[:_NAMED])}{', …' * (len(some) > _NAMED)}), which"
        f" do{'es' * (len(lost) == 1)} not count: for the classes of links, keep their files outside this folder"
    )
