"""What every shard of a set holds, in one cache file, so that a set of any number of shards is opened with one read.

The file is identified by the names of the shards in their order. A shard whose size or modification time has changed
since then is read again.
"""

from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path

from vantage.data.sources.shards.index import Facts, counts_in
from vantage.storage.cache import hash_of, read_cached, try_write_json

__all__ = ["facts_file", "write_facts", "read_facts"]

_VERSION = 3

State = tuple[int, int]


def facts_file(paths: Sequence[str], cache: Path) -> Path:
    """The file in the cache that holds the facts of these shards."""
    return cache / "shards" / f"set-{hash_of(path.encode('utf-8', 'surrogateescape') for path in paths)}.json"


def read_facts(paths: Sequence[str], states: Sequence[State], cache: Path) -> list[Facts | None]:
    """The facts of each shard that is still in its state; None for the others, and for all if the cache file is
    missing or damaged."""
    record = read_cached(facts_file(paths, cache))
    try:
        if record["version"] != _VERSION or len(record["shards"]) != len(paths):
            return [None] * len(paths)
        words = [tuple(map(str, each)) for each in record["words"]]
        return [
            Facts(int(count), words[which], int(largest), str(digest), counts_in(hidden), counts_in(unread))
            if (size, mtime) == state
            else None
            for state, (size, mtime, count, which, largest, digest, hidden, unread) in zip(
                states, record["shards"], strict=True
            )
        ]
    except (KeyError, TypeError, ValueError, IndexError, AttributeError):
        return [None] * len(paths)


def write_facts(paths: Sequence[str], states: Sequence[State], facts: Sequence[Facts], cache: Path) -> None:
    """Keep the facts of all shards, if the cache can be written. Equal lists of words are stored once, since shuffled
    shards mostly have the same words."""
    words: dict[tuple[str, ...], int] = {}
    shards = [
        [*state, each.count, words.setdefault(each.words, len(words)), *astuple(each)[2:]]
        for state, each in zip(states, facts, strict=True)
    ]
    try_write_json(facts_file(paths, cache), {"version": _VERSION, "words": list(words), "shards": shards})
