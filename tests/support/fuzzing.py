"""Every reader of files, each with a good file and a way to damage it: readers may raise nothing but `UserError`.

    python benchmarks/fuzz.py --count 10000

`try_one` damages the file of a target by a seed, so that (target, seed) identifies and repeats a failure.
"""

import os
import random
import resource
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fuzz_targets import Target
from fuzzing_kept import of_kept
from fuzzing_runs import of_runs
from fuzzing_sets import targets_of_sets
from fuzzing_studies import of_studies

from vantage.errors import UserError

SECONDS, MEBIBYTES = 5.0, 400
"""Limits for one input: processor time, which other programs do not affect, and memory."""


def memory_folder() -> str | None:
    """A folder in memory if there is one: on a disk every file means a wait, and fuzzing takes twice as long."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def targets(folder: Path) -> dict[str, Target]:
    """Every target; writes the files that a damaged one refers to into `folder`."""
    return targets_of_sets(folder) | of_runs(folder) | of_studies(folder) | of_kept(folder)


def try_one(name: str, target: Target, seed: int, folder: Path, cache: Path) -> str:
    """The outcome of one damaged file: "read", "refused", or the failure in one line."""
    file = folder / target.file
    file.write_bytes(target.damage(target.content, random.Random(f"{name} {seed}")))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with _time_limit(), warnings.catch_warnings(record=True) as messages:
            warnings.simplefilter("always", UserWarning)
            target.read(file, cache)
    except UserError as refusal:
        words = str(refusal)
        outcome = "refused" if len(words.splitlines()) == 1 else f"a message of several lines: {words[:200]!r}"
    except BaseException as failure:
        if isinstance(failure, KeyboardInterrupt):
            raise
        outcome = f"{type(failure).__name__}: {str(failure)[:200]!r}"
    else:
        outcome = f"a warning: {str(messages[0].message)[:200]!r}" if messages else "read"
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return outcome if growth < MEBIBYTES else f"{growth:.0f} MiB ({outcome})"


class TooLong(BaseException):
    """A reader took too long. Not an Exception, and so not an OSError: no reader takes it for a damaged file."""


@contextmanager
def _time_limit() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TooLong(f"more than {SECONDS} seconds")

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
