"""The image sets of the lab by name: which parts are for training and for testing, and a small set without files.

h, w: height and width in pixels
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from vantage.data import Source, SourceSubset, open_source
from vantage.data.sources.arrays import Arrays
from vantage.data.sources.renumbered import RenumberedSource
from vantage.data.splits import split
from vantage.errors import UserError
from vantage.storage.cache import hash_of
from vantage.training.images import held_out_part, training_part
from vantage.training.run import Data

__all__ = ["SETS", "ConcatenatedSource", "ImageSets", "Split"]

SETS: Mapping[str, tuple[str, str] | None] = {
    "tiny-imagenet-50": ("train", "val"),
    "cifar-10": ("train", "test"),
    "mnist": ("train", "test"),
    "flowers5": None,
}
"""Names of sets, and of their training and test parts; None if a fifth of the images is held out for testing."""

_TEST_SHARE = 0.2
"""Share of the images held out for testing in a set without parts."""


class ConcatenatedSource:
    """Several sources of the same classes, one after the other."""

    def __init__(self, *sources: Source) -> None:
        self.sources = sources
        self.classes: tuple[str, ...] = sources[0].classes
        if any(tuple(source.classes) != tuple(self.classes) for source in sources):
            raise UserError("sources of different classes cannot be joined")
        self._place = [(which, number) for which, one in enumerate(sources) for number in range(len(one))]

    def __len__(self) -> int:
        return len(self._place)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image."""
        which, own = self._place[number]
        return self.sources[which].image(own)

    def label(self, number: int) -> int | None:
        """Its class."""
        which, own = self._place[number]
        return self.sources[which].label(own)

    def name(self, number: int) -> str:
        """Its name in its own source."""
        which, own = self._place[number]
        return self.sources[which].name(own)

    def fingerprint(self) -> str:
        """A hash of the fingerprints of all sources."""
        return hash_of(source.fingerprint() for source in self.sources)


@dataclass(frozen=True)
class Split:
    """The images of a cell."""

    whole: Source
    """The images from which a run's `data` chooses the training images."""

    train: Source
    """The images that it trains on, and that classifiers are fitted on."""

    test: Source
    """Held-out training images and the test part, on which classifiers are scored."""

    @cached_property
    def fingerprints(self) -> tuple[str, str]:
        """The fingerprints of the training and the test images."""
        return self.train.fingerprint(), self.test.fingerprint()


class ImageSets:
    """The paths of the image sets; each set is opened once."""

    def __init__(self, paths: Mapping[str, str], smoke: bool = False) -> None:
        """`paths` maps the name of a set to its path. With `smoke`, scikit-learn's digits replace MNIST, and patches of
        photographs replace every other set."""
        self.paths, self.smoke = dict(paths), smoke
        self._sources: dict[str, tuple[Source, Source]] = {}
        for name in paths:
            if name not in SETS:
                raise UserError(f"there is no set {name!r} in the lab (sets: {', '.join(SETS)})")

    def split(self, name: str, data: Data) -> Split:
        """The images of one cell. Raises `UserError` for a set whose path is not known."""
        whole, test = self._parts(name)
        train = training_part(whole, data)
        return Split(whole, train, ConcatenatedSource(held_out_part(whole, data), test) if data.hold_out else test)

    def _parts(self, name: str) -> tuple[Source, Source]:
        if name not in self._sources:
            if self.smoke:
                parts = [
                    _small_digits(part) if name == "mnist" else _some(open_source(f"photographs:{part}"), count)
                    for part, count in (("train", 96), ("test", 32))
                ]
            elif name not in self.paths:
                raise UserError(f"this needs the images {name}: give --data {name}=PATH")
            elif (names := SETS[name]) is None:
                parts = split(open_source(self.paths[name]), _TEST_SHARE)
            else:
                parts = [open_source(f"{self.paths[name]}#{part}") for part in names]
            whole, test = parts
            self._sources[name] = (whole, RenumberedSource(test, whole.classes))
        return self._sources[name]


def _some(source: Source, count: int) -> SourceSubset:
    """Images spread over a source."""
    return SourceSubset(source, torch.linspace(0, len(source) - 1, count).long())


def _small_digits(part: str) -> Arrays:
    """Some of scikit-learn's digits, enlarged three times and padded to 28 by 28 pixels, light on black."""
    from sklearn.datasets import load_digits  # slow to import

    images, label = (np.asarray(each) for each in load_digits(return_X_y=True))
    rows = slice(0, 200) if part == "train" else slice(200, 300)
    pixels = (images[rows].reshape(-1, 8, 8) * (255 / 16)).astype(np.uint8)
    large = np.pad(pixels.repeat(3, 1).repeat(3, 2), ((0, 0), (2, 2), (2, 2)))
    return Arrays(large, label[rows], f"digits of scikit-learn, {part}")
