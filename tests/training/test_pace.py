"""A run that falls behind its plan says so, once."""

import pytest

from vantage.training import pace
from vantage.training.pace import Pace


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1000.0]
    monkeypatch.setattr(pace.time, "monotonic", lambda: clock[0])
    return clock


def test_a_run_on_time_says_nothing(clock: list[float]) -> None:
    on_time = Pace(minutes=2.0, steps=120, step=0, seconds=0.0)
    for step in range(1, 121):
        clock[0] += 1.09
        assert on_time.late(step) is None


def test_a_slow_run_says_so_once_and_not_too_soon(clock: list[float]) -> None:
    slow = Pace(minutes=2.0, steps=120, step=0, seconds=0.0)
    clock[0] += 19
    assert slow.late(1) is None
    clock[0] += 11
    line = slow.late(10)
    assert line is not None and "6.0 minutes instead of 2.0" in line
    clock[0] += 100
    assert slow.late(11) is None


def test_time_before_a_resume_counts(clock: list[float]) -> None:
    after_resume = Pace(minutes=2.0, steps=120, step=60, seconds=90.0)
    clock[0] += 30
    line = after_resume.late(90)
    assert line is not None and "2.5 minutes instead of 2.0" in line


def test_without_a_plan_nothing_is_late(clock: list[float]) -> None:
    free = Pace(minutes=0.0, steps=10, step=0, seconds=0.0)
    clock[0] += 10_000
    assert free.late(1) is None
