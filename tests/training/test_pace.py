"""A run that falls behind its plan says so, once."""

from collections.abc import Callable

import pytest

from vantage.training.watching import stopwatch
from vantage.training.watching.pace import Pace
from vantage.views import ProgressiveResizing


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [1000.0]
    monkeypatch.setattr(stopwatch.time, "monotonic", lambda: clock[0])
    return clock


def steps(total: int) -> Callable[[int], float]:
    return lambda step: step / total


def test_a_run_on_time_says_nothing(clock: list[float]) -> None:
    on_time = Pace(minutes=2.0, work=steps(120), step=0, seconds=0.0)
    for step in range(1, 121):
        clock[0] += 1.09
        assert on_time.late(step) is None


def test_a_slow_run_says_so_once_and_not_too_soon(clock: list[float]) -> None:
    slow = Pace(minutes=2.0, work=steps(120), step=0, seconds=0.0)
    clock[0] += 19
    assert slow.late(1) is None
    clock[0] += 11
    line = slow.late(10)
    assert line is not None and "6.0 minutes instead of 2.0" in line
    clock[0] += 100
    assert slow.late(11) is None


def test_a_short_plan_is_told_in_seconds(clock: list[float]) -> None:
    """In minutes, both numbers were the same: 0.3 minutes instead of 0.3."""
    short = Pace(minutes=0.3, work=steps(65), step=0, seconds=0.0)
    clock[0] += 20
    line = short.late(62)
    assert line is not None and "about 21 seconds instead of 18. Is another" in line


def test_time_before_a_resume_counts(clock: list[float]) -> None:
    after_resume = Pace(minutes=2.0, work=steps(120), step=60, seconds=90.0)
    clock[0] += 30
    line = after_resume.late(90)
    assert line is not None and "2.5 minutes instead of 2.0" in line


def test_without_a_plan_nothing_is_late(clock: list[float]) -> None:
    free = Pace(minutes=0.0, work=steps(10), step=0, seconds=0.0)
    clock[0] += 10_000
    assert free.late(1) is None


def test_the_time_left_counts_small_views_as_less_work(clock: list[float]) -> None:
    resizing = ProgressiveResizing((16, 24), (0.5, 0.75))
    seconds = [0.1 + 0.9 * (side / 32) ** 2 for side in (16, 24, 32)]  # of a step in each stage
    total = 50 * seconds[0] + 25 * seconds[1] + 25 * seconds[2]
    pace = Pace(minutes=0.0, work=lambda step: resizing.work(step / 100, 32), step=0, seconds=0.0)
    assert pace.seconds_left(0) is None
    begin = clock[0]
    for step in range(100):
        clock[0] += seconds[(step >= 50) + (step >= 75)]
        assert pace.seconds_left(step + 1) == pytest.approx(total - (clock[0] - begin), abs=1e-6)


def test_a_run_with_growing_views_that_keeps_its_plan_is_never_late(clock: list[float]) -> None:
    resizing = ProgressiveResizing((16,), (0.5,))
    pace = Pace(minutes=2.0, work=lambda step: resizing.work(step / 120, 32), step=0, seconds=0.0)
    for step in range(120):
        clock[0] += 0.49 if step < 60 else 1.5
        assert pace.late(step + 1) is None
