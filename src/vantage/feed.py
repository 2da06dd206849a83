"""The images of a run: opened, scanned, and handed out as batches of views.

b: images of a batch on this process
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.data import (
    Batch,
    ResidentImages,
    Source,
    StreamedImages,
    cache_folder,
    open_source,
    readable,
    scan,
)
from vantage.errors import DataError, UnreadableImage, UserError
from vantage.run import Data, Run
from vantage.views import ViewMaker

__all__ = ["Feed", "open_feed", "open_images", "usual_size"]

_LOOKED_AT = 32  # images that tell whether a set has one size


def open_images(data: Data, progress: Callable[[int, int], None] | None = None) -> tuple[Source, str]:
    """The readable images of a place, and one line about those that are not.

    Raises `UserError` (`DataError`) where the place does not exist, is empty, or has too many unreadable images.
    """
    if not data.place:
        raise UserError("no images were named: give --data PATH (a folder, .npz, .parquet, .tar or torchvision:NAME)")
    source = open_source(data.place)
    found = scan(source, workers=max(1, data.workers), progress=progress)
    return readable(source, found, data.on_bad_image), found.summary()


def usual_size(source: Source) -> tuple[int, bool]:
    """Median short side of some images spread over the set, in pixels, and whether all of them have one size."""
    step = max(1, len(source) // _LOOKED_AT)
    shapes, looked_at = [], range(0, len(source), step)
    for number in looked_at:
        try:
            shapes.append(tuple(source.image(number).shape[1:]))
        except UnreadableImage:
            continue
    if not shapes:
        raise DataError(
            f"none of the images looked at ({len(looked_at)} of {len(source)}) can be read. Check the files"
        )
    sides = sorted(min(shape) for shape in shapes)
    return sides[len(sides) // 2], len(set(shapes)) == 1


@dataclass(frozen=True)
class Feed:
    """Batches of views, epoch by epoch."""

    images: ResidentImages | StreamedImages
    """Where batches come from."""

    views: ViewMaker
    """What makes views of them."""

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return self.images.steps

    def batches(self, epoch: int, start_step: int) -> Iterator[Batch]:
        """The batches of an epoch from a step on."""
        return self.images.batches(epoch, start_step)

    def views_of(self, batch: Batch, generator: torch.Generator) -> list[Float[Tensor, "b ..."]]:
        """The views of a batch, on the device where its pixels lie, laid out channels last."""
        resident = isinstance(self.images, ResidentImages)
        made = self.views.batch(batch.pixels[0], generator) if resident else self.views.finish(batch.pixels, generator)
        return [_channels_last(view) for view in made]


def _channels_last(view: Float[Tensor, "b *rest c h w"]) -> Float[Tensor, "b *rest c h w"]:
    """The layout that convolutions are fastest with, for the patches of a jigsaw too."""
    joined = view.flatten(0, -4).contiguous(memory_format=torch.channels_last)
    return joined.unflatten(0, view.shape[:-3])


def open_feed(run: Run, source: Source, rank: int, world: int, device: torch.device) -> Feed:
    """Small sets of one image size live on the device; others stream through workers (`Data.resident_bytes`)."""
    side, one_size = usual_size(source)
    if one_size and len(source) * 3 * side * side <= run.data.resident_bytes:
        resident = partial(ResidentImages, source, run.batch, run.seed, rank=rank, world=world, device=device)
        try:
            images = resident(budget=run.data.resident_bytes, workers=max(1, run.data.workers), cache=cache_folder())
            return Feed(images, run.views)
        except DataError:
            pass  # an image of another size, or more bytes than the square of the short side told: stream
    streamed = StreamedImages(
        source,
        run.views,
        run.batch,
        run.seed,
        rank=rank,
        world=world,
        workers=run.data.workers,
        on_bad_image=run.data.on_bad_image,
    )
    return Feed(streamed, run.views)
