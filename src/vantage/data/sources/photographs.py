"""Small real images without a download: patches of photographs that are part of scikit-image and scikit-learn.

n: patches   h, w: height and width in pixels
"""

from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files
from typing import Literal

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image, ImageOps
from torch import Tensor

from vantage.errors import DataError
from vantage.storage.cache import hash_of

# Measured to be hard enough: raw pixels identify the photograph of few patches, so an encoder has something to learn.
# Pages of text and drawings are left out, and so is the second view of the motorcycle.
_PHOTOGRAPHS = (
    ("skimage", "data/astronaut.png"),
    ("skimage", "data/brick.png"),
    ("skimage", "data/camera.png"),
    ("skimage", "data/chelsea.png"),
    ("skimage", "data/coffee.png"),
    ("skimage", "data/coins.png"),
    ("skimage", "data/grass.png"),
    ("skimage", "data/gravel.png"),
    ("skimage", "data/hubble_deep_field.jpg"),
    ("skimage", "data/ihc.png"),
    ("skimage", "data/moon.png"),
    ("skimage", "data/motorcycle_left.png"),
    ("skimage", "data/retina.jpg"),
    ("skimage", "data/rocket.jpg"),
    ("sklearn", "datasets/images/china.jpg"),
    ("sklearn", "datasets/images/flower.jpg"),
)
_ROWS, _COLUMNS = 4, 6  # blocks of a photograph
_BLOCK = 80  # height and width of a block in pixels
_MARGIN = 4  # pixels left out along every border of a block: patches of neighboring blocks are twice this far apart
_STRIDE = 20  # pixels from one patch to the next in a block


@dataclass(frozen=True)
class Photographs:
    """Patches of 16 photographs; the class of a patch is the photograph that it was cropped from.

    Every photograph is scaled and cropped to 480 x 320 pixels and divided into 24 blocks. The patches of 6 blocks are
    the test split and those of the other 18 the train split. No patch crosses a block, and 4 pixels along every border
    of a block belong to no patch, so no pixel is in both splits. Patches of one block may overlap.

    Raises `DataError` if a photograph is not in the installed package.
    """

    split: Literal["train", "test"] = "train"
    """Which blocks of the photographs: three quarters of them (train) or the rest (test)."""
    side: int = 32
    """Height and width of a patch, in pixels, from 1 to 72."""

    def __post_init__(self) -> None:
        most = _BLOCK - 2 * _MARGIN
        if not 1 <= self.side <= most:
            raise DataError(
                f"patches of {self.side} pixels do not fit in blocks of {most}: choose a side from 1 to {most}"
            )

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the photographs."""
        return tuple(path.rpartition("/")[2].partition(".")[0] for _, path in _PHOTOGRAPHS)

    def __len__(self) -> int:
        return len(_PHOTOGRAPHS) * len(self._corners)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One patch as RGB, `side` pixels high and wide."""
        photograph, (y, x) = self._corner_of(number)
        return self._pixels[photograph, :, y : y + self.side, x : x + self.side].clone()

    def label(self, number: int) -> int:
        """The index of the photograph in `classes`."""
        return self._corner_of(number)[0]

    def name(self, number: int) -> str:
        """The photograph, and the row and column of the patch's upper left corner."""
        photograph, (y, x) = self._corner_of(number)
        return f"{self.classes[photograph]} at {y}, {x}"

    def fingerprint(self) -> str:
        """A hash of the pixels of the photographs and of the positions of the patches."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return hash_of([self._pixels.numpy().tobytes(), repr((self.side, self._corners)).encode()])

    def _corner_of(self, number: int) -> tuple[int, tuple[int, int]]:
        """The photograph of a patch and its upper left corner."""
        if not 0 <= number < len(self):
            raise IndexError(f"image {number} of {len(self)}")
        photograph, corner = divmod(number, len(self._corners))
        return photograph, self._corners[corner]

    @cached_property
    def _corners(self) -> tuple[tuple[int, int], ...]:
        """Upper left corners of the patches, the same in every photograph."""
        steps = range(_MARGIN, _BLOCK - _MARGIN - self.side + 1, _STRIDE)
        blocks = [(row, column) for row in range(_ROWS) for column in range(_COLUMNS)]
        own_blocks = [block for block in blocks if _is_test(*block) == (self.split == "test")]
        corners = [(row * _BLOCK, column * _BLOCK) for row, column in own_blocks]
        return tuple((top + y, left + x) for top, left in corners for y in steps for x in steps)

    @cached_property
    def _pixels(self) -> UInt8[Tensor, "photographs 3 h w"]:
        return torch.stack([_read_photograph(package, path) for package, path in _PHOTOGRAPHS])


def _is_test(row: int, column: int) -> bool:
    """Every fourth block on a diagonal, so that both splits cover all parts of a photograph."""
    return (column + 2 * row) % 4 == 0


def _read_photograph(package: str, path: str) -> UInt8[Tensor, "3 h w"]:
    """One photograph, scaled to cover 480 x 320 pixels and cropped to its center."""
    file = files(package).joinpath(path)
    if not file.is_file():
        raise DataError(
            f"the demonstration needs the photograph {path} of the package {package}, but the installed version does "
            "not have it. Install scikit-image 0.24 or later and scikit-learn 1.5 or later"
        )
    with file.open("rb") as stream, Image.open(stream) as image:
        size = (_COLUMNS * _BLOCK, _ROWS * _BLOCK)
        crop = ImageOps.fit(image.convert("RGB"), size, Image.Resampling.LANCZOS)
    return torch.from_numpy(np.array(crop)).permute(2, 0, 1)
