"""The images of a run as batches of views.

b: images of a batch on this process
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.data import Batch, BatchOrder, ResidentImages, Source, StreamedImages, cache_folder
from vantage.data.resident import Decoded
from vantage.errors import DataError
from vantage.machine.allocator import memory_of
from vantage.processes.sharing import true_on_all
from vantage.training.images import usual_size
from vantage.training.run import Data, Run
from vantage.views import ViewMaker

__all__ = ["Feed", "feed_of", "open_feed", "resident_budget"]


@dataclass(frozen=True)
class Feed:
    """Batches of views, epoch by epoch."""

    images: ResidentImages | StreamedImages
    """The images, as batches."""

    views: ViewMaker
    """What makes the views of a batch."""

    @property
    def steps(self) -> int:
        """Steps of an epoch."""
        return self.images.steps

    def batches(self, epoch: int, start_step: int) -> Iterator[Batch]:
        """The batches of an epoch, from step `start_step` of it on."""
        return self.images.batches(epoch, start_step)

    def views_of(self, batch: Batch, generator: torch.Generator) -> list[Float[Tensor, "b ..."]]:
        """The views of a batch, on the device of its pixels, in channels-last layout."""
        resident = isinstance(self.images, ResidentImages)
        views = self.views.batch(batch.pixels[0], generator) if resident else self.views.finish(batch.pixels, generator)
        return [_channels_last(view) for view in views]

    def decoded(self, source: Source) -> Source:
        """The source of these images, with their pixels from memory if they are there as they are in the source."""
        if not isinstance(self.images, ResidentImages) or self.images.resized:
            return source
        return Decoded(source, self.images.pixels.cpu())


def _channels_last(view: Float[Tensor, "b *rest c h w"]) -> Float[Tensor, "b *rest c h w"]:
    """A view, or the patches of a jigsaw, in the memory layout in which convolutions are fastest."""
    flat = view.flatten(0, -4).contiguous(memory_format=torch.channels_last)
    return flat.unflatten(0, view.shape[:-3])


def resident_budget(data: Data, device: str) -> int:
    """Bytes of images that may stay on a device: `data.resident_bytes`, but at most half of its memory, since settings
    may come from a larger machine."""
    return min(data.resident_bytes, memory_of(device) // 2)


def open_feed(
    run: Run,
    source: Source,
    rank: int,
    world_size: int,
    device: torch.device,
    progress: Callable[[int, int], None] | None = None,
) -> Feed:
    """The batches of a run on one of its processes."""
    order = BatchOrder(run.batch_size, run.seed, rank, world_size, run.accumulate, run.data.shuffle_window)
    return feed_of(run.views, run.data, order, source, device, progress)


def feed_of(
    views: ViewMaker,
    data: Data,
    order: BatchOrder,
    source: Source,
    device: torch.device,
    progress: Callable[[int, int], None] | None = None,
) -> Feed:
    """Batches of views. Small sets of one image size are kept on the device, others streamed (`Data.resident_bytes`),
    unless squares of them are to be kept (`Data.resident_side`).

    `progress` gets (images done, images in all) while images are decoded into memory.
    """
    side, has_one_size = data.resident_side, True
    if not side:
        side, common = usual_size(source)
        has_one_size = common is not None
    budget = resident_budget(data, str(device))
    if true_on_all(has_one_size and len(source) * 3 * side * side <= budget):  # memory may differ between machines
        try:
            images = ResidentImages(
                source,
                order,
                size=data.resident_side or None,
                budget=budget,
                device=device,
                num_workers=max(1, data.num_workers),
                cache=cache_folder(),
                progress=progress,
            )
            return Feed(images, views)
        except DataError:
            pass  # an image of another size, or more bytes than expected from the short side: stream
    stream = StreamedImages(source, views, order, num_workers=data.num_workers, on_bad_image=data.on_bad_image)
    return Feed(stream, views)
