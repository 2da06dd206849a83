"""A signal is a wish that the loop looks at, and a second one ends at once."""

import os
import signal
import threading

import pytest

from vantage.training.signals import Signals, anywhere

BOTH = [signal.SIGINT, signal.SIGTERM]


@pytest.fixture(autouse=True)
def handlers_put_back():
    """Whatever a test leaves, pytest keeps its own."""
    before = {number: signal.getsignal(number) for number in BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_asks_and_changes_nothing_else(number: int):
    with Signals() as stopping:
        assert not stopping.requested and not stopping.anywhere()
        os.kill(os.getpid(), number)
        assert stopping.requested and stopping.anywhere()


@pytest.mark.parametrize("number", BOTH)
def test_a_second_one_goes_to_whoever_had_it_before(number: int):
    calls = []
    signal.signal(number, lambda *_: calls.append("before"))
    with Signals() as stopping:
        signal.raise_signal(number)
        assert stopping.requested and calls == []
        signal.raise_signal(number)
        assert calls == ["before"]


def test_a_second_interrupt_ends_at_once():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt), Signals() as stopping:
        signal.raise_signal(signal.SIGINT)
        assert stopping.requested
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_one_of_each_kind_is_not_a_second_one():
    with Signals() as stopping:
        signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
        assert stopping.requested


@pytest.mark.parametrize("fails", [False, True])
def test_handlers_are_put_back(fails: bool):
    mine = {number: (lambda *_: None) for number in BOTH}
    for number, handler in mine.items():
        signal.signal(number, handler)
    try:
        with Signals():
            assert all(signal.getsignal(number) is not handler for number, handler in mine.items())
            signal.raise_signal(signal.SIGTERM)
            if fails:
                raise RuntimeError("the run failed")
    except RuntimeError:
        assert fails
    assert all(signal.getsignal(number) is handler for number, handler in mine.items())


@pytest.mark.parametrize("number", BOTH)
def test_a_signal_that_is_ignored_or_handled_outside_python_is_left_alone(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    signal.signal(number, signal.SIG_IGN)
    with Signals() as stopping:
        os.kill(os.getpid(), number)
        assert not stopping.requested
    assert signal.getsignal(number) is signal.SIG_IGN
    with monkeypatch.context() as patch:  # undone before handlers are put back
        patch.setattr(signal, "getsignal", lambda _: None)
        patch.setattr(signal, "signal", lambda *_: None)
        with Signals() as stopping:
            assert stopping.handlers == {}


def test_each_use_starts_unasked():
    stopping = Signals()
    with stopping:
        signal.raise_signal(signal.SIGTERM)
    with stopping:
        assert not stopping.requested


def test_in_another_thread_signals_stay_with_their_owner():
    before, results = signal.getsignal(signal.SIGTERM), []

    def works() -> None:
        with Signals() as stopping:
            results.append((stopping.anywhere(), signal.getsignal(signal.SIGTERM) is before))

    thread = threading.Thread(target=works)
    thread.start()
    thread.join()
    assert results == [(False, True)] and signal.getsignal(signal.SIGTERM) is before


def test_on_one_process_anywhere_is_here():
    assert anywhere(True) and not anywhere(False)
