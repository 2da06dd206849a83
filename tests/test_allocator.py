"""Freed memory is kept by the process, unless the user has other wishes for the allocator."""

import resource

import pytest
import torch

from vantage.allocator import keep_freed_memory


def page_faults() -> int:
    """Page faults of filling a block of 64 MiB, which is freed afterwards."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(1 << 24)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_freed_blocks_are_used_again_without_page_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    if not keep_freed_memory():
        pytest.skip("this system has another allocator than glibc's")
    faults = [page_faults() for _ in range(20)]  # the first ones find the heap's holes too small
    assert min(faults) < 100, "a page has 4 KiB, so a fresh block has 16,384 of them"


@pytest.mark.parametrize("name", ["MALLOC_ARENA_TEST", "GLIBC_TUNABLES"])
def test_the_users_own_settings_stand(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "8")
    assert not keep_freed_memory()
