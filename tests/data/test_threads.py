"""Things made in threads: in order, as far ahead as asked, by as many threads as asked."""

import threading
from collections.abc import Iterator

import pytest

from vantage.data.threads import prefetch


def test_parts_come_in_order_and_only_some_are_begun() -> None:
    starts: list[int] = []

    def parts() -> Iterator[range]:
        for number in range(20):
            starts.append(number)
            yield range(3 * number, 3 * number + 3)

    values = prefetch(lambda key: 2 * key, parts(), num_workers=2, ahead=4)
    assert next(values) == [0, 2, 4] and starts == list(range(5))
    assert [value for part in values for value in part] == [2 * key for key in range(3, 60)]


def test_as_many_threads_as_asked_work_at_once() -> None:
    together = threading.Barrier(3, timeout=30)

    def make(key: int) -> int:
        together.wait()  # passed by three at once, or by none
        return key

    assert list(prefetch(make, [range(3), range(3, 6)], num_workers=3, ahead=0)) == [[0, 1, 2], [3, 4, 5]]


def test_a_failure_comes_out_and_what_waits_is_not_begun() -> None:
    release, keys_tried = threading.Event(), []

    def make(key: int) -> int:
        keys_tried.append(key)
        if key == 1:
            raise ValueError("one")
        if key > 1:
            release.wait(0.05)
        return key

    with pytest.raises(ValueError, match="one"):
        list(prefetch(make, ([key] for key in range(100)), num_workers=1, ahead=50))
    assert len(keys_tried) < 10
