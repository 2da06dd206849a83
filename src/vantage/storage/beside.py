"""Parts that need a file: a copy of it lies beside the settings of every run, so that a run's folder is whole."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vantage.composition.fitting import everywhere, parts_of

__all__ = ["KeptBeside", "beside", "keep"]


@runtime_checkable
class KeptBeside(Protocol):
    """A part that needs a file. Where that lies is no part of what it is, so such a field does not compare."""

    def copy_to(self, folder: Path) -> None:
        """Put a copy of the file into a folder."""
        ...

    def beside(self, folder: Path) -> Any:
        """The same part, reading the copy in this folder where there is one."""
        ...


def keep(value: Any, folder: Path) -> None:
    """Copy the files of all parts into a folder that exists."""
    for part in parts_of(value):
        if isinstance(part, KeptBeside):
            part.copy_to(folder)


def beside(value: Any, folder: Path) -> Any:
    """The same composition, its parts reading the copies in a folder."""
    return everywhere(value, lambda part: part.beside(folder) if isinstance(part, KeptBeside) else part)
