"""Freed memory is kept by the process, unless the user has other wishes for the allocator."""

import subprocess
import sys

import pytest

from vantage.machine.allocator import keep_freed_memory

FAULTS = """
import ctypes, resource
from vantage.machine.allocator import keep_freed_memory

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(size)
    libc.memset(block, 1, size)
    libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

libc, size = ctypes.CDLL(None), ctypes.c_size_t(1 << 26)
libc.malloc.restype = ctypes.c_void_p
libc.memset.argtypes = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t
libc.free.argtypes = (ctypes.c_void_p,)
print(faults(), keep_freed_memory(), min(faults() for _ in range(5)))
"""
"""Prints the page faults of filling a block of 64 MiB, before and after freed memory is kept."""


def test_freed_blocks_are_used_again_without_page_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    # A process of its own: the heap of one that has run other tests may have no room to grow.
    answer = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    before, kept_blocks, after = answer.stdout.split()
    if kept_blocks == "False":
        pytest.skip("this system has another allocator than glibc's")
    assert int(after) < 100 and int(after) < int(before), "a page has 4 KiB, so a fresh block has 16,384 of them"


@pytest.mark.parametrize("name", ["MALLOC_ARENA_TEST", "GLIBC_TUNABLES"])
def test_the_users_own_settings_stand(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "8")
    assert not keep_freed_memory()
