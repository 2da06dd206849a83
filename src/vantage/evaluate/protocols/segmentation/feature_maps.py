"""What a frozen backbone makes of images with masks: squares of the images, and maps of the squares, each kept in the
cache.

n: images   b: images of a batch   r: rows   c: channels of an image   d: channels of a map   y, x: its height and width
s: side of a square in pixels   h, w: height and width of an image
"""

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor
from torchvision.transforms.v2 import functional

from vantage.data.sources.masked import MaskedImages
from vantage.data.sources.source import cache_key
from vantage.encoding import Work, in_threads
from vantage.errors import DataError
from vantage.evaluate.protocols.segmentation.decoder import MapAt
from vantage.frozen.encoder import FrozenEncoder
from vantage.progress import counting
from vantage.storage.arrays import Rows, kept_rows
from vantage.storage.cache import hash_of

__all__ = ["FeatureMaps", "Squares", "mask_for", "mirror_images"]


class Squares:
    """Images and masks of one set as squares: decoded and resized once, for all checkpoints."""

    def __init__(self, source: MaskedImages, size: int, work: Work) -> None:
        """Squares of `size` pixels. Raises `DataError` for a mask that does not fit its image."""
        self.source, self.size, self.count = source, size, len(source)
        self.key = hash_of([cache_key(source).encode(), f"{size}".encode(), b"squares 1"])

        def made(numbers: Int[Tensor, "b"]) -> UInt8[Tensor, "b 4 s s"]:
            return torch.cat(list(in_threads(self._both, iter([numbers.tolist()]), work.num_workers)))

        file = work.cache / "squares" / f"{self.key}.npy"
        with counting(work.progress, "images as squares") as progress:
            self._rows = kept_rows(made, self.count, file, work.resident_bytes, progress)

    def images(self, numbers: Int[Tensor, "b"]) -> UInt8[Tensor, "b 3 s s"]:
        """Whole images, resized on both sides."""
        return self._rows(numbers)[:, :3]

    def masks(self, numbers: Int[Tensor, "b"]) -> UInt8[Tensor, "b s s"]:
        """Their masks: the class of the nearest pixel."""
        return self._rows(numbers)[:, 3]

    def present(self) -> list[int]:
        """Every index that some mask has, in order."""
        found: set[int] = set()
        for numbers in torch.arange(self.count).split(64):
            found |= set(self.masks(numbers).unique().tolist())
        return sorted(found)

    def _both(self, number: int) -> UInt8[Tensor, "4 s s"]:
        mask = mask_for(self.source, number, image := self.source.image(number))
        square = [self.size, self.size]
        small = functional.resize(mask[None], square, interpolation=functional.InterpolationMode.NEAREST_EXACT)
        return torch.cat([functional.resize(image, square, antialias=True), small])


class FeatureMaps:
    """Maps of all images of a set, and of their mirror images where they are wanted: made once for a checkpoint."""

    def __init__(self, encoder: FrozenEncoder, depth: int, squares: Squares, mirror: bool, work: Work) -> None:
        """The map at `depth` (see `MapAt`). Raises `UserError` for a backbone that has none there."""
        self.encoder, self.squares, self.device, self._ways = (
            encoder,
            squares,
            work.resolved_device(),
            2 if mirror else 1,
        )
        self._map = MapAt(encoder.backbone, depth).eval().to(self.device)
        facts = (encoder.digest(), repr(encoder.view), squares.key, f"{depth} {self._ways}", self.device.type, "1")
        self.key = hash_of(fact.encode() for fact in facts)
        file = work.cache / "maps" / f"{self.key}.npy"
        with counting(work.progress, f"maps, {encoder.name}") as progress:
            self._rows: Rows = kept_rows(self._made, self._ways * squares.count, file, work.resident_bytes, progress)

    def of(self, numbers: Int[Tensor, "b"], flipped: Bool[Tensor, "b"] | None = None) -> Float[Tensor, "b d y x"]:
        """Maps of some images, on the device of the work; of the mirror images of those that are `flipped`."""
        rows = self._ways * numbers + (0 if flipped is None else flipped.long())
        return self._rows(rows).to(self.device)

    @torch.no_grad()
    def _made(self, rows: Int[Tensor, "r"]) -> Float[Tensor, "r d y x"]:
        """By rows: image 0, its mirror image where these are wanted, image 1, …"""
        numbers, place = (rows // self._ways).unique(return_inverse=True)
        images = mirror_images(self.squares.images(numbers)[place], rows % self._ways == 1)
        return self._map(self.encoder.view.finish(images.to(self.device))).cpu()


def mirror_images(images: UInt8[Tensor, "b *c s s"], flipped: Bool[Tensor, "b"]) -> UInt8[Tensor, "b *c s s"]:
    """Some of the images, left to right."""
    return torch.where(flipped.view(-1, *[1] * (images.dim() - 1)), images.flip(-1), images)


def mask_for(source: MaskedImages, number: int, image: UInt8[Tensor, "3 h w"]) -> UInt8[Tensor, "h w"]:
    """The mask of an image; raises `DataError` where it has another size."""
    mask = source.mask(number)
    if mask.shape != image.shape[1:]:
        raise DataError(
            f"the mask of {source.name(number)} is {mask.shape[1]} x {mask.shape[0]} pixels, but the image is"
            f" {image.shape[2]} x {image.shape[1]}: a mask has the size of its image"
        )
    return mask
