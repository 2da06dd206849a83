"""Cores that other programs use, from pretended readings of the system, and threads for the rest."""

import os

import pytest
import torch

from vantage.machine import load
from vantage.machine.load import taken_cores, threads_for_free_cores, using_threads

IDLE, BUSY, HALF, NICE = (
    [0, 0, 0, 100, 0, 0, 0, 0],
    [90, 0, 10, 0, 0, 0, 0, 0],
    [50, 0, 0, 50, 0, 0, 0, 0],
    [0, 100] + 6 * [0],
)


@pytest.fixture(autouse=True)
def three_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 3}, raising=False)


def taken(*spent: list[int]) -> int:
    readings = iter(
        [{core: [7] * 8 for core in range(len(spent))}, {n: [7 + t for t in s] for n, s in enumerate(spent)}]
    )
    return taken_cores(0.0, lambda: next(readings))


def test_a_core_is_taken_while_others_use_most_of_its_time() -> None:
    assert taken(IDLE, IDLE, IDLE, IDLE) == 0 and taken(HALF, HALF, HALF, HALF) == 0
    assert taken(BUSY, IDLE, BUSY, IDLE) == 1  # core 2 is not ours
    assert taken(BUSY, BUSY, IDLE, BUSY) == 3


def test_programs_of_low_priority_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "nice", lambda step: 0)
    assert taken(NICE, IDLE, IDLE, IDLE) == 0
    monkeypatch.setattr(os, "nice", lambda step: 5)
    assert taken(NICE, IDLE, IDLE, IDLE) == 1


def test_a_system_that_says_nothing_has_no_taken_core() -> None:
    assert taken_cores(0.0, dict) == 0


@pytest.mark.parametrize(("busy", "threads"), [(0, 0), (1, 2), (2, 1), (3, 1)])
def test_threads_are_as_many_as_free_cores(busy: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "taken_cores", lambda: busy)
    assert threads_for_free_cores() == threads
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert threads_for_free_cores() == 0


def test_the_number_of_threads_is_put_back() -> None:
    before = torch.get_num_threads()
    with pytest.raises(KeyError), using_threads(before + 1):
        assert torch.get_num_threads() == before + 1
        raise KeyError
    with using_threads(0):
        assert torch.get_num_threads() == before
    assert torch.get_num_threads() == before
