"""Small sets: every image decoded once into one uint8 tensor on the device, from which batches are picked by number.

Several processes share the decoding, block by block.

n: images   b: images of a batch on this process   h, w: height and width in pixels
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from vantage.data.loading import Batch
from vantage.data.order import BatchOrder, steps_in
from vantage.data.resize import resize_to_square
from vantage.data.sources.source import Source, blocks_of, cache_key
from vantage.data.sources.subset import SourceSubset
from vantage.errors import DataError, UnreadableImage
from vantage.machine.launchers import is_first_here
from vantage.processes.sharing import gather_rows, own_slice, true_on_all
from vantage.storage.cache import hash_of
from vantage.storage.cache_size import in_use, leave_half, make_room
from vantage.storage.files import atomic_file
from vantage.storage.quiet import quiet_headers

_OFTEN = 32
"""Images between two reports of progress."""

_BLOCK = 4096
"""Images that all processes decode before they exchange them."""

BUDGET = 4 << 30
"""Bytes of pixels that may live on the device, unless the caller sets another bound: 350,000 images of 64 px."""


def resident_size(source: Source, size: int | None = None) -> tuple[int, int]:
    """Height and width of a set's images in memory: both `size`, or if omitted those of the first readable image."""
    if size is not None:
        return size, size
    for number in range(len(source)):
        try:
            image = source.image(number)
        except UnreadableImage:
            continue
        return image.shape[1], image.shape[2]
    raise DataError(f"none of the {len(source)} images can be read. Check the files")


def fits_in_memory(source: Source, size: int | None = None, budget: int = BUDGET) -> bool:
    """Whether a set's images, brought to this size (if omitted, the first image's), stay within a budget in bytes."""
    height, width = resident_size(source, size)
    return len(source) * 3 * height * width <= budget


def decode_all(
    source: Source,
    size: int | None = None,
    num_workers: int = 2,
    cache: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> UInt8[Tensor, "n 3 h w"]:
    """Every image in one tensor.

    With `size`, an image of another size is resized so that its short side has this length (bilinear, antialiased) and
    cropped to the central square. Without, all must have the size of the first, else `DataError`. With `cache`, the
    pixels are saved there (uncompressed), unless they take more than half of the free disk, and read back as long as
    the images are the same. `progress` gets (images done, images in all) now and then. Each of several processes
    decodes a part of the images, so all must call it, and an error of one is an error of all.
    """
    height, width = resident_size(source, size)
    shape = (len(source), 3, height, width)
    cache_file = None
    if cache is not None:
        key = hash_of([cache_key(source), repr(shape)])
        cache_file = cache / "decoded" / f"{key}.npy"
        saved_pixels = _read_cache(cache_file, shape)
        if true_on_all(saved_pixels is not None) and saved_pixels is not None:
            return saved_pixels
    pixels = _decode(source, size, shape, num_workers, progress)
    if cache_file is not None and is_first_here():
        with suppress(OSError):  # the disk is full: images are decoded again the next time
            leave_half(cache_file, pixels.nbytes)
            make_room(cache_file, pixels.nbytes)
            with atomic_file(cache_file) as file:
                np.save(file, pixels.numpy(), allow_pickle=False)
    return pixels


def _decode(
    source: Source,
    size: int | None,
    shape: tuple[int, ...],
    num_workers: int,
    progress: Callable[[int, int], None] | None,
) -> UInt8[Tensor, "n 3 h w"]:
    pixels, (height, width) = torch.empty(shape, dtype=torch.uint8), shape[2:]

    def fill(number: int) -> None:
        image = source.image(number)
        if image.shape[1:] != (height, width):
            if size is None:
                raise DataError(
                    f"the image {source.name(number)} is {image.shape[2]} x {image.shape[1]} pixels, but the first is "
                    f"{width} x {height}. Give a size to which all are resized"
                )
            image = resize_to_square(image, size)
        pixels[number] = image

    with ThreadPoolExecutor(max(1, num_workers)) as pool:
        for start in range(0, len(source), _BLOCK):
            block = range(start, min(start + _BLOCK, len(source)))
            own = block[own_slice(len(block))]
            with _error_of_all():
                for count, _ in enumerate(pool.map(fill, own), start + 1):
                    if progress is not None and count % _OFTEN == 0:
                        progress(count, len(source))
            if len(own) < len(block):
                pixels[block.start : block.stop] = gather_rows(pixels[own.start : own.stop], len(block))
            if progress is not None and block.stop == len(source):
                progress(len(source), len(source))
    return pixels


@contextmanager
def _error_of_all() -> Iterator[None]:
    """A context whose `DataError` on one process is raised on all, so that all go on alike."""
    problem = None
    try:
        yield
    except DataError as caught:
        problem = caught
    if not true_on_all(problem is None):
        raise problem or DataError("another process found an image that cannot be decoded with the others")


class ResidentImages:
    """Batches from a set that lives on the device; `size`, `num_workers`, `cache` and `progress` are those of
    `decode_all`. Raises `DataError` if the pixels take more than `budget` bytes."""

    def __init__(
        self,
        source: Source,
        order: BatchOrder,
        *,
        size: int | None = None,
        budget: int = BUDGET,
        device: torch.device | str = "cpu",
        num_workers: int = 2,
        cache: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.steps = steps_in(len(source), order.batch_size)
        height, width = resident_size(source, size)
        need = len(source) * 3 * height * width
        if need > budget:
            raise DataError(
                f"{len(source):,} images of {width} x {height} pixels take {need / 2**20:,.0f} MiB, and "
                f"{budget / 2**20:,.0f} MiB are allowed. Stream them, give a smaller size, or allow more"
            )
        self._order, self._starts = order, blocks_of(source)
        self.resized = size is not None
        self.pixels: UInt8[Tensor, "n 3 h w"] = decode_all(source, size, num_workers, cache, progress).to(device)

    def batches(self, epoch: int, start_step: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from a step on: `pixels` is one tensor of whole images."""
        joint = self._order.epoch(self._starts, epoch).part(0, len(self.pixels))
        for row in self._order.share(joint).to(self.pixels.device)[start_step:]:
            yield Batch(row, (self.pixels.index_select(0, row),))


class Decoded(SourceSubset):
    """A source whose images need not be decoded again."""

    def __init__(self, source: Source, pixels: UInt8[Tensor, "n 3 h w"]) -> None:
        super().__init__(source, range(len(source)))
        self.pixels = pixels

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB."""
        return self.pixels[number]


def _read_cache(path: Path, shape: tuple[int, ...]) -> UInt8[Tensor, "n 3 h w"] | None:
    """Pixels that were saved earlier, or None if there are none or the file is damaged."""
    try:
        with quiet_headers(), in_use(path) as file:
            pixels = np.load(file, allow_pickle=False)
    except Exception:  # NumPy's reader of headers fails with many kinds of error
        return None
    return torch.from_numpy(pixels) if pixels.shape == shape and pixels.dtype == np.uint8 else None
