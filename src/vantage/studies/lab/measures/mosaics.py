"""Semantic segmentation of mosaics, which are made of labeled images: a set with masks is not needed."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from vantage.data.sources.mosaics import Mosaics
from vantage.evaluate import Segmentation
from vantage.studies.lab.contracts import Subject
from vantage.training.run import Data

__all__ = ["MIOU", "MosaicSegmentation", "frozen_arms"]

MIOU = "mIoU"
"""The name of the number that claims are about."""
_STEP, _MAPS = 4.0, 3.0
"""Cost of a mosaic of 64 pixels in a step of a decoder of 32 channels, and that of its map, in forward passes: about 4
and 3 ms of one core that is otherwise busy. Decoders do not profit from bfloat16, so processors differ in the ratio."""


def frozen_arms(tables: str = "table 1") -> str:
    """The scale of an entry that measures the arms of other tables of its paper."""
    decoder = "a decoder of four convolutions for mosaics of four images of CIFAR-10 (JPEG)"
    return f"the arms of {tables}, frozen, under {decoder}"


@dataclass(frozen=True)
class MosaicSegmentation:
    """The mean IoU of a decoder on the frozen backbone (`Segmentation`), for mosaics of labeled images.

    It stands for the dense tasks of the papers, on sets that are not here: InfoMin's segmentation of NYU-v2
    (arXiv 2005.10243, Figure 4), and the detectors of all four papers. The images of the mosaics, their places and the
    decoder follow the seed of the cell, so that all cells of a seed are compared on the same mosaics.
    """

    others: tuple[str, ...] = ("cifar-10",)
    """The name of the set that the mosaics are made of (`vantage.studies.lab.sets`)."""

    protocol: Segmentation = field(default_factory=lambda: Segmentation(width=32, epochs=15))
    """The decoder and its training; size and seed are set for each cell."""

    across: int = 2
    """A mosaic has this many rows and columns of images."""

    side: int = 32
    """Side of an image in a mosaic, in pixels: that of the networks' own views."""

    mosaics: int = 1_000
    """Number of mosaics of training images."""

    test_mosaics: int = 1_000
    """Number of mosaics of test images."""

    name = "segmentation"

    @property
    def version(self) -> int:
        """The version of the protocol."""
        return self.protocol.version

    @property
    def data(self) -> Data:
        """All images of the set: the mosaics draw from them."""
        return Data()

    @property
    def passes(self) -> float:
        """Approximate cost, in forward passes of a 32-pixel image through four convolutions."""
        images = (self.across * self.side / 64) ** 2  # in mosaics of 64 pixels
        return images * (_STEP * self.protocol.epochs * self.mosaics + _MAPS * (2 * self.mosaics + self.test_mosaics))

    def __call__(self, subject: Subject) -> dict[str, float]:
        """Mean IoU, pixel accuracy and mean accuracy in percent. Nothing that the protocol keeps on disk is left."""
        (name,) = self.others
        images = subject.other(name, self.data)
        train, test = (
            Mosaics(source, count, subject.seed, self.across, self.side)
            for source, count in ((images.train, self.mosaics), (images.test, self.test_mosaics))
        )
        protocol = replace(self.protocol, size=self.across * self.side, seed=subject.seed)
        with TemporaryDirectory() as folder:
            outcome = protocol(subject.encoder, train, test, replace(subject.work, cache=Path(folder)))
        return dict(outcome.measures)
