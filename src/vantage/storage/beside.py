"""Parts that need a file: a copy lies beside the settings of every run, so that a run's folder is complete."""

from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from vantage.composition.fitting import change_all, parts_of

__all__ = ["HasFile", "beside", "copy_files"]


@runtime_checkable
class HasFile(Protocol):
    """A part that needs a file. The file's path does not change what the part is, so that field is not compared."""

    def copy_to(self, folder: Path) -> None:
        """Put a copy of the file into a folder."""
        ...

    def beside(self, folder: Path) -> Any:
        """The same part, reading the copy in this folder if there is one."""
        ...


def copy_files(value: Any, folder: Path) -> None:
    """Copy the files of all parts into a folder that exists."""
    for part in parts_of(value):
        if isinstance(part, HasFile):
            part.copy_to(folder)


def beside(value: Any, folder: Path) -> Any:
    """The same composition, with its parts reading the copies in a folder."""
    return change_all(value, HasFile, lambda part: part.beside(folder))
