"""Entries of the lab by their names."""

from vantage.studies.lab import ENTRIES, Entry


def entry_of(name: str) -> Entry:
    """The entry with this name."""
    return next(entry for entry in ENTRIES if entry.name == name)
