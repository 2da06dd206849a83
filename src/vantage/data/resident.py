"""Small sets: every image decoded once into one uint8 tensor on the device, batches picked by number.

n: images   b: images of a batch on this process   h, w: height and width in pixels
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor
from torchvision.transforms.v2 import functional as F

from vantage.data.loading import Batch
from vantage.data.order import epoch_order, shares, steps_in
from vantage.data.sources.source import Source, cache_key
from vantage.errors import DataError, UnreadableImage
from vantage.storage.cache import hash_of
from vantage.storage.files import written_whole

_OFTEN = 32
"""Images after which progress is told."""

BUDGET = 4 << 30
"""Bytes of pixels that may live on the device, unless the caller states another bound: 350,000 images of 64 px."""


def resident_size(source: Source, size: int | None = None) -> tuple[int, int]:
    """Height and width that the images of a set have in memory: `size` squared, or that of the first readable image."""
    if size is not None:
        return size, size
    for number in range(len(source)):
        try:
            image = source.image(number)
        except UnreadableImage:
            continue
        return image.shape[1], image.shape[2]
    raise DataError(f"none of the {len(source)} images can be read. Check the files")


def fits(source: Source, size: int | None = None, budget: int = BUDGET) -> bool:
    """Whether a set with images of this size (of its first image's unless stated) stays within a budget in bytes."""
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

    With `size`, an image of another size is resized so that its short side is that long (bilinear, antialiased) and cut
    to the middle square. Without, all must have the size of the first, else `DataError`. With `cache`, the pixels are
    kept there (uncompressed) as long as the images are the same and read back the next time. `progress` is told (images
    done, images in all) now and then.
    """
    height, width = resident_size(source, size)
    shape = (len(source), 3, height, width)
    kept = None
    if cache is not None:
        key = hash_of([cache_key(source).encode(), repr(shape).encode()])
        kept = cache / "decoded" / f"{key}.npy"
        if (known := _read(kept, shape)) is not None:
            return known
    pixels = torch.empty(shape, dtype=torch.uint8)

    def fill(number: int) -> None:
        image = source.image(number)
        if image.shape[1:] != (height, width):
            if size is None:
                raise DataError(
                    f"the image {source.name(number)} is {image.shape[2]} x {image.shape[1]} pixels, but the first is "
                    f"{width} x {height}. State a size to which all are brought"
                )
            image = F.center_crop(F.resize(image, [size], antialias=True), [size, size])
        pixels[number] = image

    with ThreadPoolExecutor(max(1, num_workers)) as pool:
        for start in range(0, len(source), 4096):
            for done, _ in enumerate(pool.map(fill, range(start, min(start + 4096, len(source)))), start + 1):
                if progress is not None and (done % _OFTEN == 0 or done == len(source)):
                    progress(done, len(source))
    if kept is not None:
        try:
            with written_whole(kept) as file:
                np.save(file, pixels.numpy(), allow_pickle=False)
        except OSError:
            pass  # no room: it is decoded again the next time
    return pixels


class ResidentImages:
    """Batches from a set that lives on the device. `batch` counts the images of a step on all processes together."""

    def __init__(
        self,
        source: Source,
        batch_size: int,
        seed: int,
        *,
        size: int | None = None,
        budget: int = BUDGET,
        device: torch.device | str = "cpu",
        rank: int = 0,
        world_size: int = 1,
        num_workers: int = 2,
        cache: Path | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.steps = steps_in(len(source), batch_size)
        height, width = resident_size(source, size)
        need = len(source) * 3 * height * width
        if need > budget:
            raise DataError(
                f"{len(source):,} images of {width} x {height} pixels take {need / 2**20:,.0f} MiB, and "
                f"{budget / 2**20:,.0f} MiB are allowed. Stream them, state a smaller size, or allow more"
            )
        self._batch, self._seed, self._rank, self._world = batch_size, seed, rank, world_size
        shares(torch.arange(len(source)), batch_size, rank, world_size)  # refuses now what would fail later
        self.pixels: UInt8[Tensor, "n 3 h w"] = decode_all(source, size, num_workers, cache, progress).to(device)

    def batches(self, epoch: int, start_step: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from a step on: `pixels` is one tensor of whole images."""
        order = epoch_order(len(self.pixels), self._seed, epoch)
        rows = shares(order, self._batch, self._rank, self._world).to(self.pixels.device)
        for row in rows[start_step:]:
            yield Batch(row, (self.pixels.index_select(0, row),))


def _read(path: Path, shape: tuple[int, ...]) -> UInt8[Tensor, "n 3 h w"] | None:
    """Pixels kept earlier, or None where there are none or they are damaged."""
    try:
        kept = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return torch.from_numpy(kept) if kept.shape == shape and kept.dtype == np.uint8 else None
