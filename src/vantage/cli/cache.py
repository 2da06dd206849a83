"""The verb `cache`: show how much disk the cache takes, or empty it."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from vantage.cli.printing.console import Console
from vantage.cli.printing.disk import size_in_words
from vantage.cli.reading.arguments import Command, Word, read
from vantage.errors import UserError
from vantage.storage.cache import cache_folder
from vantage.storage.cache_size import IN_USE, KINDS, CacheFile, cache_files, most_bytes, try_to_remove

__all__ = ["cache"]


@dataclass(frozen=True)
class CacheOptions:
    """The options of `cache`."""

    folder: Annotated[str, Word("FOLDER", positional=True)] = ""
    """Another cache, such as the folder cache of a lab; if omitted, VANTAGE_CACHE or ~/.cache/vantage."""

    clear: bool = False
    """Remove every file that is not in use."""


def cache(words: list[str], console: Console) -> int:
    """Show how much disk the cache takes, or empty it: vantage cache [FOLDER] [--clear].

    The cache holds what can be made again, such as features and decoded images. Before a large file is written, those
    that were not used for the longest time are removed, until all stay within VANTAGE_CACHE_SIZE, such as 50GB. If it
    is not set, this is 20 GB or a tenth of the disk, whichever is less. Listings, indexes and results are small: they
    do not count, and only --clear removes them. Downloads (in the folder sets) and files of others always stay.
    """
    (options,) = read(Command("cache", cache.__doc__ or ""), words, CacheOptions)
    folder = Path(options.folder) if options.folder else cache_folder()
    if options.folder and not folder.is_dir():
        raise UserError(f"{folder} is not a folder: name a cache, such as the folder cache of a lab")
    bound, files = most_bytes(folder), cache_files(folder)
    if options.clear:
        files = _clear(files, console)
    large = sum(file.size for file in files if file.large)
    console.result(f"{folder}: {size_in_words(large)} of at most {size_in_words(bound)}")
    for kind, about in KINDS.items():
        if own := [file for file in files if file.kind == kind]:
            console.result(f"  {size_in_words(sum(file.size for file in own)):>9}  {len(own):>6,} in {kind:<11}{about}")
    return 0


def _clear(files: list[CacheFile], console: Console) -> list[CacheFile]:
    """Remove the files that are not in use, and return the others; a note says why they stay."""
    rest = [(file, why) for file in files if (why := try_to_remove(file))]
    removed = sum(file.size for file in files) - sum(file.size for file, _ in rest)
    counts = Counter(why for _, why in rest)
    in_use = counts.pop(IN_USE, 0)
    stay = (f"; files that cannot be removed ({why}): {count:,}" for why, count in counts.items())
    console.note(f"removed {size_in_words(removed)}" + f"; files in use: {in_use:,}" * (in_use > 0) + "".join(stay))
    return [file for file, _ in rest]
