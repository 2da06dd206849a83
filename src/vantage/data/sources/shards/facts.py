"""What every shard of a set holds, in one file of the cache, so that a set of any number of shards opens by one read.

The file belongs to the names of the shards in their order. A shard whose size or time has changed since is not found in
it, and read for itself.
"""

from collections.abc import Sequence
from pathlib import Path

from vantage.data.sources.shards.index import Facts
from vantage.storage.cache import hash_of, read_cached, try_write_json

__all__ = ["facts_file", "keep_facts", "kept_facts"]

_VERSION = 1

State = tuple[int, int]


def facts_file(paths: Sequence[str], cache: Path) -> Path:
    """Where the facts of these shards are kept."""
    return cache / "shards" / f"set-{hash_of(path.encode('utf-8', 'surrogateescape') for path in paths)}.json"


def kept_facts(paths: Sequence[str], states: Sequence[State], cache: Path) -> list[Facts | None]:
    """The facts of each shard that is still in its state; None for the others, and for all where the file is missing or
    damaged."""
    record = read_cached(facts_file(paths, cache))
    try:
        if record["version"] != _VERSION or len(record["shards"]) != len(paths):
            return [None] * len(paths)
        words = [tuple(map(str, each)) for each in record["words"]]
        return [
            Facts(int(count), words[which], int(largest), str(digest)) if (size, changed) == state else None
            for state, (size, changed, count, which, largest, digest) in zip(states, record["shards"], strict=True)
        ]
    except (KeyError, TypeError, ValueError, IndexError):
        return [None] * len(paths)


def keep_facts(paths: Sequence[str], states: Sequence[State], facts: Sequence[Facts], cache: Path) -> None:
    """Keep the facts of all shards, if the cache can be written. Lists of words are kept once, since mixed shards have
    the same."""
    words: dict[tuple[str, ...], int] = {}
    shards = [
        [*state, each.count, words.setdefault(each.words, len(words)), each.largest, each.digest]
        for state, each in zip(states, facts, strict=True)
    ]
    try_write_json(facts_file(paths, cache), {"version": _VERSION, "words": list(words), "shards": shards})
