"""Memory that a process has had from the system once, kept for its next step.

glibc maps each large block when it is needed and returns it when it is freed, so on a CPU every training step pays for
its activations again in page faults: about a third of its time (`benchmarks/allocator.py`).
"""

import ctypes
import os

__all__ = ["keep_freed_memory"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of glibc's malloc.h
_LARGEST = 2**31 - 1  # bytes; mallopt takes an int


def keep_freed_memory() -> bool:
    """Let the C library keep freed blocks below 2 GiB instead of returning them to the system.

    The process then holds on to its peak memory until it ends, in the benchmark about a quarter more than it would
    otherwise. Does nothing where the user has set an environment variable of glibc's allocator (`MALLOC_…` or
    `GLIBC_TUNABLES`), and on systems without glibc. Returns whether it took effect.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        options = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl and macOS have none; Windows has no name for "this process"
        return False
    return all(options(option, _LARGEST) == 1 for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))
