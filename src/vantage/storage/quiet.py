"""Reading .npy and .npz files without warnings."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["quiet_headers"]


@contextmanager
def quiet_headers() -> Iterator[None]:
    """A context in which NumPy is silent about headers like those of Python 2, which damaged files may seem to have."""
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        yield
