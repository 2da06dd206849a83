"""Inputs of the decoder, kept in the cache: images with masks as squares, and a frozen backbone's maps of the squares.

n: images   b: images of a batch   r: rows   c: channels of an image   d: channels of a map   y, x: its height and width
s: side of a square in pixels   h, w: height and width of an image
"""

from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from vantage import processes
from vantage.data.resize import resize
from vantage.data.sources.source import HasMasks, cache_key
from vantage.encoders.backbones.depths import example_maps
from vantage.encoding import Work, in_threads
from vantage.errors import DataError, UserError, first_line
from vantage.evaluate.protocols.segmentation.decoder import MapAt
from vantage.frozen.encoder import FrozenEncoder, Pixels
from vantage.processes.sharing import own_parts, parts_in_order, true_on_all, write_on_first
from vantage.progress import counting
from vantage.storage.arrays import AT_ONCE, Rows, cache_rows, cached_rows
from vantage.storage.cache import hash_of
from vantage.storage.rows_file import open_rows

__all__ = ["FeatureMaps", "Squares", "mask_for", "mirror_images", "try_maps"]


class Squares:
    """Images and masks of a data set as squares, decoded and resized once for all checkpoints."""

    def __init__(self, source: HasMasks, size: int, work: Work) -> None:
        """Squares of `size` pixels. Raises `DataError` for a mask that does not fit its image."""
        self.source, self.size, self.count = source, size, len(source)
        self.key = hash_of([cache_key(source), f"{size}", "squares 1"])

        def compute(numbers: Int[Tensor, "b"]) -> UInt8[Tensor, "b 4 s s"]:
            return torch.cat(list(in_threads(self._image_with_mask, iter([numbers.tolist()]), work.num_workers)))

        file = work.cache / "squares" / f"{self.key}.npy"
        with counting(work.progress, "images as squares") as progress:
            self._rows = _shared_rows(compute, self.count, file, work.resident_bytes, progress)

    def images(self, numbers: Int[Tensor, "b"]) -> UInt8[Tensor, "b 3 s s"]:
        """Whole images, both sides resized."""
        return self._rows(numbers)[:, :3]

    def masks(self, numbers: Int[Tensor, "b"]) -> UInt8[Tensor, "b s s"]:
        """Their masks, with the class of the nearest pixel."""
        return self._rows(numbers)[:, 3]

    def present(self) -> list[int]:
        """Every index that occurs in a mask, in order."""
        indices: set[int] = set()
        for numbers in torch.arange(self.count).split(64):
            indices |= set(self.masks(numbers).unique().tolist())
        return sorted(indices)

    def _image_with_mask(self, number: int) -> UInt8[Tensor, "4 s s"]:
        from torchvision.transforms.v2 import functional

        mask = mask_for(self.source, number, image := self.source.image(number))
        square = [self.size, self.size]
        small = functional.resize(mask[None], square, interpolation=functional.InterpolationMode.NEAREST_EXACT)
        return torch.cat([resize(image, square), small])


class FeatureMaps:
    """Maps of all images of a data set, with or without those of their mirror images, computed once per checkpoint."""

    def __init__(self, encoder: FrozenEncoder, depth: int, squares: Squares, mirror: bool, work: Work) -> None:
        """The map at `depth` (see `MapAt`). Raises `UserError` for a backbone without a map at that depth."""
        self.encoder, self.squares, self.device = encoder, squares, work.resolved_device()
        self._copies = 2 if mirror else 1
        self._map = MapAt(encoder.backbone, depth).eval().to(self.device)
        facts = (encoder.digest(), repr(encoder.view), squares.key, f"{depth} {self._copies}", self.device.type, "1")
        self.key = hash_of(facts)
        file = work.cache / "maps" / f"{self.key}.npy"
        with counting(work.progress, f"maps, {encoder.name}") as progress:
            self._rows: Rows = _shared_rows(
                self._compute, self._copies * squares.count, file, work.resident_bytes, progress
            )

    def of(self, numbers: Int[Tensor, "b"], mirror: Bool[Tensor, "b"] | None = None) -> Float[Tensor, "b d y x"]:
        """Maps of some images, on the device; those of the mirror image where `mirror` is true."""
        rows = self._copies * numbers + (0 if mirror is None else mirror.long())
        return self._rows(rows).to(self.device)

    @torch.no_grad()
    def _compute(self, rows: Int[Tensor, "r"]) -> Float[Tensor, "r d y x"]:
        """The rows are: image 0, its mirror image if there are any, image 1, …"""
        numbers, index = (rows // self._copies).unique(return_inverse=True)
        images = mirror_images(self.squares.images(numbers)[index], rows % self._copies == 1)
        return self._map(self.encoder.view.finish(images.to(self.device))).cpu()


def try_maps(encoder: FrozenEncoder, size: int) -> None:
    """Raises `UserError` for a backbone without maps, or one that refuses squares of this size."""
    if isinstance(encoder.backbone, Pixels):
        return
    square = encoder.view.finish(torch.zeros(1, 3, size, size, dtype=torch.uint8))
    weight = next(encoder.backbone.parameters(), square)
    try:
        shapes = [tuple(one.shape) for one in example_maps(encoder.backbone, square.to(weight.device))]
    except UserError:
        raise
    except Exception as problem:  # a user's network may raise anything
        raise UserError(
            f"{encoder.name} does not fit squares of {size} pixels ({first_line(problem)}): give another --size, or"
            " omit it"
        ) from problem
    if wrong := next((shape for shape in shapes if len(shape) != 4), None):
        raise UserError(f"{encoder.name}: a map of one image has the shape {wrong}; expected (1, channels, y, x)")


def mirror_images(images: UInt8[Tensor, "b *c s s"], mirror: Bool[Tensor, "b"]) -> UInt8[Tensor, "b *c s s"]:
    """The images, flipped left to right where `mirror` is true."""
    return torch.where(mirror.view(-1, *[1] * (images.dim() - 1)), images.flip(-1), images)


def mask_for(source: HasMasks, number: int, image: UInt8[Tensor, "3 h w"]) -> UInt8[Tensor, "h w"]:
    """The mask of an image; raises `DataError` if it has another size."""
    mask = source.mask(number)
    if mask.shape != image.shape[1:]:
        raise DataError(
            f"the mask of {source.name(number)} is {mask.shape[1]} x {mask.shape[0]} pixels, but the image is"
            f" {image.shape[2]} x {image.shape[1]}: a mask has the size of its image"
        )
    return mask


def _shared_rows(
    make: Rows,
    count: int,
    file: Path,
    resident: int,
    progress: Callable[[int, int], None] = lambda completed, total: None,
) -> Rows:
    """Like `vantage.storage.arrays.cached_rows`, bit for bit, but all processes make the rows together and the first
    one writes them. A process that cannot see the first one's folder makes them alone."""

    def parts(start: int) -> Generator[Tensor, None, None]:
        each = torch.arange(start, count).split(AT_ONCE)
        own = (make(numbers) for numbers in own_parts(each))
        for numbers, rows in zip(each, parts_in_order(own, len(each), tuple(row.shape[1:]), row.dtype), strict=True):
            yield rows
            progress(int(numbers[-1]) + 1, count)

    def write(parts: Callable[[int], Iterator[Tensor]]) -> None:
        cache_rows(file, (count, *row.shape[1:]), row.dtype, {}, parts)

    if processes.count() > 1 and not true_on_all(open_rows(file, count) is not None):
        row = make(torch.arange(min(count, 1)))
        write_on_first(write, parts)
    return cached_rows(make, count, file, resident, progress)
