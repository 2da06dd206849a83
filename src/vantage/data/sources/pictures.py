"""Images that a program already has: paths of files, Pillow images, arrays.

h, w: height and width in pixels
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from vantage.data.decode import decode, to_rgb
from vantage.data.sources.source import spread
from vantage.errors import DataError, UnreadableImage
from vantage.storage.cache import hash_of

__all__ = ["Pictures"]


class Pictures:
    """Images of any size in a sequence: paths of files, Pillow images, uint8 arrays (h, w) or (h, w, 3), also mixed.
    They have no labels. Raises `DataError` for anything else, and if there are no images."""

    classes: tuple[str, ...] = ()

    def __init__(self, images: Sequence[Any]) -> None:
        if len(images) == 0:
            raise DataError("there are no images: give at least one")
        for number, image in enumerate(images):
            _check(image, number)
        self._images = list(images)

    def __len__(self) -> int:
        return len(self._images)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage` if a file is missing or damaged."""
        image = self._images[number]
        if isinstance(image, np.ndarray):
            color = image if image.ndim == 3 else image[..., None].repeat(3, axis=2)
            return torch.from_numpy(np.array(color)).permute(2, 0, 1).contiguous()
        if isinstance(image, Image.Image):
            return to_rgb(image, self.name(number))
        try:
            return decode(Path(image).read_bytes(), str(image))
        except OSError as problem:
            raise UnreadableImage(str(image), problem.strerror or str(problem)) from problem

    def label(self, number: int) -> int | None:
        """None: there are no labels."""
        return None

    def name(self, number: int) -> str:
        """The path, for a file; otherwise the row."""
        image = self._images[number]
        return str(image) if isinstance(image, str | Path) else f"row {number}"

    def fingerprint(self) -> str:
        """A hash of the number of images and of the pixels of at most 32, evenly spaced."""
        facts = [str(len(self)).encode()]
        return hash_of(facts + [self.image(number).numpy().tobytes() for number in spread(len(self))])


def _check(image: Any, number: int) -> None:
    if isinstance(image, str | Path | Image.Image):
        return
    if not isinstance(image, np.ndarray):
        raise DataError(f"image {number} is {type(image).__name__}: give a path, a picture of Pillow, or an array")
    if image.dtype != np.uint8 or image.ndim not in (2, 3) or image.shape[2:] not in ((), (3,)) or image.size == 0:
        raise DataError(
            f"image {number} is {image.dtype} of shape {image.shape}: give uint8 of shape (h, w, 3) or (h, w)"
        )
