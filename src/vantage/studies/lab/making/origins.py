"""Which computers made the cells of each entry and seed: differences are paired only if one kind of computer did."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache, cached_property
from typing import Any

from vantage.storage.cache import digest
from vantage.studies.lab.entry import Entry
from vantage.studies.lab.making.compositions import composition

__all__ = ["Origins"]

_ROUNDING = ("processor", "bfloat16", "gpus")
"""The hardware that decides how numbers are rounded."""


class Origins:
    """The computers of a lab's cells, by entry and seed. Baselines are left out, since they are not trained, and so are
    cells that do not say where they were made."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """`entries` are those of all levels; their numbers here tell them apart. They are made for the first cell: a
        folder that is refused needs none."""
        self.left_out = 0
        self._of: dict[tuple[int, str], set[str]] = defaultdict(set)
        self._all = entries

    def add(self, record: Mapping[str, Any]) -> None:
        """Note where a cell of the lab was made."""
        if origin := _origin(record):
            for group in self._groups(record):
                self._of[group].add(origin)

    def admits(self, record: Mapping[str, Any]) -> bool:
        """Whether a cell from elsewhere may join the lab, in which case it is noted: in none of its entries, its seed
        has cells of other computers alone."""
        origin, groups = _origin(record), self._groups(record)
        if origin and any(self._of[group] and origin not in self._of[group] for group in groups):
            self.left_out += 1
            return False
        self.add(record)
        return True

    @cached_property
    def _entries(self) -> dict[str, list[int]]:
        """The numbers of the entries that an experiment belongs to, by its digest."""
        numbers = defaultdict[str, list[int]](list)
        made_of = cache(lambda experiment: digest(composition(experiment)))  # cells share their experiments
        for number, entry in enumerate(self._all):
            for made in {made_of(cell.experiment) for cell in entry.runnable_cells}:
                numbers[made].append(number)
        return numbers

    def _groups(self, record: Mapping[str, Any]) -> list[tuple[int, str]]:
        """The entries that a cell belongs to, each with the cell's seed."""
        about = record["about"]
        made = about.get("made")
        if not isinstance(made, dict) or "untrained" in made:
            return []
        return [(number, str(about.get("seed"))) for number in self._entries.get(digest(made), ())]


def _origin(record: Mapping[str, Any]) -> str:
    """What identifies the kind of computer; "" if the record does not say. A stranger may have written anything."""
    computer = record.get("made_on", {})
    hardware, versions = computer.get("hardware"), computer.get("versions")
    if not isinstance(hardware, dict) or not isinstance(versions, dict) or "processor" not in hardware:
        return ""
    return json.dumps([*(hardware.get(name) for name in _ROUNDING), versions.get("torch")], sort_keys=True)
