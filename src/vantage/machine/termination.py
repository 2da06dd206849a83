"""SIGTERM ends a command as Ctrl-C does, so that temporary files are removed and finished work is kept."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["interrupted_by_sigterm"]


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """A context in which SIGTERM raises `KeyboardInterrupt`, unless it is already handled or ignored, or if this is not
    the main thread. Schedulers, containers and `timeout` send it; by default, Python ends without any cleaning up."""
    try:
        if changed := signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
            signal.signal(signal.SIGTERM, signal.default_int_handler)
    except ValueError:  # not the main thread, which alone can handle signals
        changed = False
    try:
        yield
    finally:
        if changed:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
