"""What the words of `vantage reproduce` mean: entries, cells, image sets, seeds."""

from typing import TYPE_CHECKING, Any

from vantage.composition.suggest import no_such
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.studies.lab import Entry

__all__ = ["check_cells", "name_and_path", "read_seeds", "select_entries"]


def select_entries(names: tuple[str, ...]) -> "tuple[Entry, ...]":
    """The entries that names and groups of them mean, each once. Raises `UserError` for an unknown one."""
    from vantage.studies.lab import ENTRIES

    groups: dict[str, Any] = {entry.name: (entry,) for entry in ENTRIES}
    for paper in dict.fromkeys(entry.paper.lower() for entry in ENTRIES):
        groups[paper] = tuple(entry for entry in ENTRIES if entry.paper.lower() == paper)
    groups["all"] = ENTRIES
    for name in names:
        if name not in groups:
            raise no_such("entry", name, groups, "entries")
    return tuple({entry.name: entry for name in names for entry in groups[name]}.values())


def check_cells(entries: "tuple[Entry, ...]", names: tuple[str, ...]) -> tuple[str, ...]:
    """The names. Raises `UserError` for one that is not the name of a cell that can be run."""
    known = tuple(dict.fromkeys(cell.name for entry in entries for cell in entry.runnable_cells))
    for name in names:
        if name not in known:
            raise no_such("cell", name, known, "cells")
    return names


def name_and_path(word: str) -> tuple[str, str]:
    """The two sides of NAME=PATH. Raises `UserError` if either is missing."""
    name, equals, path = word.partition("=")
    if not equals or not name or not path:
        raise UserError(f"--data {word}: write NAME=PATH, such as tiny-imagenet-50=tiny-imagenet-50.tar.gz")
    return name, path


def read_seeds(words: str) -> tuple[int, ...]:
    """The seeds of FIRST..LAST, or one. Raises `UserError` for other words."""
    first, _, last = words.partition("..")
    try:
        seeds = tuple(range(int(first), int(last or first) + 1))
    except ValueError:
        seeds = ()
    if not seeds or seeds[0] < 0:
        raise UserError(f"--seeds {words}: write FIRST..LAST, such as 0..5, or one number")
    return seeds
