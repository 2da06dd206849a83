"""Files that a set names twice, by the same path or through links, so that their images would count twice."""

import os
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from functools import cache
from pathlib import Path

__all__ = ["linked_twice", "listed_twice", "named_twice", "twice_words"]


def named_twice(paths: Sequence[str], states: Sequence[Hashable]) -> dict[int, int]:
    """The number of each path that leads to the same file as an earlier one, with the number of that one. `states` are
    sizes and times: only paths with equal ones are resolved, which asks the file system for every folder above."""
    alike = Counter(states)
    first: dict[str, int] = {}
    where = [(n, os.path.realpath(path)) for n, path in enumerate(paths) if alike[states[n]] > 1]
    return {n: first[file] for n, file in where if first.setdefault(file, n) != n}


def listed_twice(root: Path, names: Sequence[str]) -> dict[int, int]:
    """The number of each name, relative to `root` or absolute, that leads to the same file as an earlier one, with the
    number of that one. Links are followed as by `_files`."""
    first: dict[str, int] = {}
    return {n: first[file] for n, file in enumerate(_files(root, names)) if first.setdefault(file, n) != n}


def linked_twice(root: Path, names: Sequence[str], links: Sequence[str]) -> dict[str, str]:
    """Each of `links`, the names below `root` that are symbolic links, that leads to the file of another name, with the
    name that counts: the file's own, or else the first link to it."""
    files = {name: os.path.realpath(root / name) for name in links}
    first, wanted = dict[str, str](), set(files.values())
    for name, file in zip(names, _files(root, names), strict=True) if links else ():
        if name not in files and file in wanted:
            first[file] = name
    return {name: first[file] for name, file in files.items() if first.setdefault(file, name) != name}


def _files(root: Path, names: Sequence[str]) -> Iterator[str]:
    """The path of each file by which two names of it are equal, unless one is itself a link: only links among folders
    are followed, since that asks the file system once for each folder."""

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
