"""Memory: freed blocks are kept for the next step, and large demands are checked before memory is taken.

glibc maps each large block when it is needed and returns it when it is freed, so on a CPU every training step pays for
its activations again in page faults: about a third of its time (`benchmarks/allocator.py`).
"""

import ctypes
import os

from vantage.errors import UserError

__all__ = ["check_memory", "check_views", "keep_freed_memory", "memory_of"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # numbers of glibc's malloc.h
_LARGEST = 2**31 - 1  # bytes; mallopt takes an int


def memory_of(device: str) -> int:
    """Bytes of memory of a GPU, or of this machine."""
    if device.startswith("cuda"):
        import torch  # takes a second, which the help of a command can do without

        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_views(images: int, each: int, device: str, remedy: str) -> None:
    """Raises `UserError`, before views are made, if those of `images` images, `each` bytes per image, would fill more
    than a quarter of a device's memory. Networks need several times as much as their views."""
    memory = memory_of(device)
    if 4 * images * each > memory:
        raise UserError(
            f"the views of {images:,} images at once take {images * each / 2**30:,.1f} GiB, more than a quarter of this"
            f" machine's {memory / 2**30:,.1f} GiB: {remedy}"
        )


def check_memory(demand: int, device: str, what: str, remedy: str) -> None:
    """Raises `UserError` if `what` needs more bytes than a device's whole memory."""
    memory = memory_of(device)
    if demand > memory:
        raise UserError(
            f"{what} takes {demand / 2**30:,.1f} GiB, and this machine has {memory / 2**30:,.1f} GiB: {remedy}"
        )


def keep_freed_memory() -> bool:
    """Let the C library keep freed blocks below 2 GiB instead of returning them to the system.

    The process then holds on to its peak memory until it ends: in the benchmark, about a quarter more than it would
    otherwise. Does nothing if the user has set an environment variable of glibc's allocator (`MALLOC_…` or
    `GLIBC_TUNABLES`), and on systems without glibc. Returns whether it took effect.
    """
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in os.environ):
        return False
    try:
        options = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # musl and macOS have none; Windows has no name for "this process"
        return False
    return all(options(option, _LARGEST) == 1 for option in (_MMAP_THRESHOLD, _TRIM_THRESHOLD))
