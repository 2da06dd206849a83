"""What a training within an evaluation keeps in the cache, so that a stopped one ends as one that was never stopped."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from vantage.data.cache import written_whole
from vantage.data.source import hash_of

__all__ = ["KeptState"]

SECONDS = 60.0
"""Between two states."""


class KeptState:
    """Tensors in a file that is named by all that the training depends on."""

    def __init__(self, folder: Path, facts: Iterable[bytes]) -> None:
        self.file = folder / f"{hash_of(facts)}.safetensors"
        self._last = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether the last state, or the beginning, was a while ago."""
        return time.monotonic() - self._last > SECONDS

    def write(self, tensors: Mapping[str, Tensor]) -> None:
        """Keep these; a cache without room costs time after a stop, but is no failure."""
        whole = save({name: value.detach().cpu().contiguous() for name, value in tensors.items()})
        try:
            with written_whole(self.file) as target:
                target.write(whole)
        except OSError:
            pass
        self._last = time.monotonic()

    def read(self) -> dict[str, Tensor]:
        """What was kept; nothing where nothing was, or not whole."""
        try:
            return load_file(self.file)
        except (OSError, SafetensorError):
            return {}

    def forget(self) -> None:
        """The training is done."""
        self.file.unlink(missing_ok=True)
