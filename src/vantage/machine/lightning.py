"""Lightning Fabric, imported without torchmetrics."""

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType

__all__ = ["import_fabric"]


def import_fabric() -> None:
    """Import Lightning Fabric, which imports torchmetrics, if it is installed, only to see its version. That takes a
    third of the time in which a training starts, since torchmetrics imports SciPy and Matplotlib."""
    try:
        with _only_its_version("torchmetrics"):
            importlib.import_module("lightning_fabric")
    except ImportError:  # of a version that needs more of torchmetrics
        importlib.import_module("lightning_fabric")


@contextmanager
def _only_its_version(package: str) -> Iterator[None]:
    """A context in which importing a package that is installed gives a module with nothing but its version."""
    stand_in = ModuleType(package)
    try:
        stand_in.__version__ = version(package)  # pyright: ignore[reportAttributeAccessIssue]
    except PackageNotFoundError:
        yield
        return
    if sys.modules.setdefault(package, stand_in) is not stand_in:  # imported already
        yield
        return
    try:
        yield
    finally:
        del sys.modules[package]
