"""An open shard, for as long as it is the file that was indexed."""

import os
from pathlib import Path

from vantage.data.sources.file_stamp import FileStamp

__all__ = ["Descriptor"]


class Descriptor:
    """An open shard, closed when nothing refers to it any longer, so that no thread reads from a closed one."""

    def __init__(self, path: str, state: tuple[int, int]) -> None:
        """Raises `OSError`, and `DataError` if the file is no longer in this state."""
        self.number, self._stamp = os.open(path, os.O_RDONLY), FileStamp(Path(path), state)
        self.check()

    def check(self) -> None:
        """Raises `DataError` if the file was written to since: other images may lie where those of its index were."""
        self._stamp.check(self.number)

    def __enter__(self) -> "Descriptor":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.number)
        self.number = -1

    def __del__(self) -> None:
        if getattr(self, "number", -1) >= 0:
            os.close(self.number)
