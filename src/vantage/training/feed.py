"""The images of a run: opened, scanned, and handed out as batches of views.

b: images of a batch on this process   n: images
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage import draws
from vantage.data import (
    Batch,
    ResidentImages,
    Source,
    SourceSubset,
    StreamedImages,
    cache_folder,
    check_source,
    labels_of,
    open_source,
    readable,
    scan,
)
from vantage.data.splits import hold_out_mask
from vantage.errors import DataError, UnreadableImage, UserError
from vantage.machine.allocator import memory_of
from vantage.processes.sharing import true_on_all
from vantage.training.run import Data, Run
from vantage.views import ViewMaker

__all__ = ["SAMPLE", "Feed", "feed_of", "held_out_part", "open_feed", "open_images", "training_part", "usual_size"]

_PART = 0x9A27  # what a seed is for
SAMPLE = 32
"""At least this many images are looked at to find the size of a set's images, if there are as many."""
_MOST_SCANNED = (
    10_000_000  # larger sets are not decoded first to find unreadable images: that would take as long as an epoch
)


def open_images(
    data: Data,
    progress: Callable[[int, int], None] | None = None,
    source: Source | None = None,
    together: bool = False,
) -> tuple[Source, str]:
    """The readable images that a run trains on, and one line about those that are not readable.

    They come from `source`, or from `data.path` if it is omitted. With `together`, all processes of the run call this
    at the same time and share the search for unreadable images. Raises `UserError` (`DataError`) if there is nothing
    at that path, if the source lacks a method, or if too many images are unreadable.
    """
    if source is None and not data.path:
        raise UserError(
            "no images were named: give --data PATH (a folder, .npz, .parquet, .tar or torchvision:NAME), or `source` "
            "from Python"
        )
    whole = open_source(data.path, progress=progress) if source is None else check_source(source)
    if len(whole) > _MOST_SCANNED:
        line = f"{len(whole):,} images, too many to try each of them first (data.on_bad_image: {data.on_bad_image})"
        return training_part(whole, data), line
    result = scan(whole, num_workers=max(1, data.num_workers), progress=progress, together=together)
    usable = readable(whole, result, data.on_bad_image)
    part = training_part(usable, data)
    line = result.summary()
    return part, line if part is usable else f"{line}; {len(part):,} of them are trained on"


def training_part(source: Source, data: Data) -> Source:
    """The images of a source that are not held out, or `max_images` of them, in their order in the source.

    The draw depends only on the number of images and their labels (seed 0), so it is the same for every run. Raises
    `UserError` if there are fewer than `max_images`.
    """
    if not data.hold_out and not data.max_images:
        return source
    label = labels_of(source)
    numbers = (~_hold_out_mask(label, data.hold_out)).nonzero()[:, 0] if data.hold_out else torch.arange(len(source))
    if data.max_images > len(numbers):
        raise UserError(
            f"{data.max_images:,} training images were asked for, but there are {len(numbers):,}: ask for fewer"
        )
    if data.max_images:
        order = numbers[torch.randperm(len(numbers), generator=torch.Generator().manual_seed(draws.mix(0, _PART)))]
        rank = torch.empty_like(order)  # of an image within its class
        for number in label[order].unique():
            of_class = label[order] == number
            rank[of_class] = torch.arange(int(of_class.sum()))
        numbers = order[rank.argsort(stable=True)[: data.max_images]].sort().values
    return SourceSubset(source, numbers)


def held_out_part(source: Source, data: Data) -> Source:
    """The images of a source that `data.hold_out` leaves out of training, in their order in it."""
    out = _hold_out_mask(labels_of(source), data.hold_out)
    return SourceSubset(source, out.nonzero()[:, 0])


def _hold_out_mask(label: Int[Tensor, "n"], share: float) -> Bool[Tensor, "n"]:
    """The images that `vantage.data.split` holds out: of the labeled ones, or of all if none is labeled."""
    rows = (label >= 0) | (label < 0).all()
    out = torch.zeros(len(label), dtype=torch.bool)
    out[rows] = hold_out_mask(label[rows], share, 0)
    return out


def usual_size(source: Source) -> tuple[int, bool]:
    """Median short side, in pixels, of at most 63 images spread over the set, and whether all of these have the same
    size."""
    step = max(1, len(source) // SAMPLE)
    shapes, numbers = [], range(0, len(source), step)
    for number in numbers:
        try:
            shapes.append(tuple(source.image(number).shape[1:]))
        except UnreadableImage:
            continue
    if not shapes:
        raise DataError(f"none of the images tried ({len(numbers)} of {len(source)}) can be read. Check the files")
    sides = sorted(min(shape) for shape in shapes)
    return sides[len(sides) // 2], len(set(shapes)) == 1


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


def _channels_last(view: Float[Tensor, "b *rest c h w"]) -> Float[Tensor, "b *rest c h w"]:
    """A view, or the patches of a jigsaw, in the memory layout in which convolutions are fastest."""
    flat = view.flatten(0, -4).contiguous(memory_format=torch.channels_last)
    return flat.unflatten(0, view.shape[:-3])


def open_feed(
    run: Run,
    source: Source,
    rank: int,
    world_size: int,
    device: torch.device,
    progress: Callable[[int, int], None] | None = None,
) -> Feed:
    """The batches of a run on one of its processes."""
    share = (rank, world_size, run.accumulate)
    return feed_of(run.views, run.data, run.batch_size, run.seed, source, device, share, progress)


def feed_of(
    views: ViewMaker,
    data: Data,
    batch_size: int,
    seed: int,
    source: Source,
    device: torch.device,
    share: tuple[int, int, int] = (0, 1, 1),
    progress: Callable[[int, int], None] | None = None,
) -> Feed:
    """Batches of views. Small sets of one image size are kept on the device, others streamed (`Data.resident_bytes`),
    unless squares of them are to be kept (`Data.resident_side`).

    `share` holds the number of this process, the number of processes, and the number of accumulated parts of a batch.
    `progress` gets (images done, images in all) while images are decoded into memory.
    """
    rank, world_size, accumulate = share
    settings = {"rank": rank, "world_size": world_size, "accumulate": accumulate, "shuffle_window": data.shuffle_window}
    side, one_size = (data.resident_side, True) if data.resident_side else usual_size(source)
    budget = min(data.resident_bytes, memory_of(str(device)) // 2)  # settings may come from a larger machine
    if true_on_all(one_size and len(source) * 3 * side * side <= budget):  # memory may differ between machines
        resident = partial(ResidentImages, source, batch_size, seed, **settings, device=device, progress=progress)
        try:
            size, num_workers = data.resident_side or None, max(1, data.num_workers)
            images = resident(size=size, budget=budget, num_workers=num_workers, cache=cache_folder())
            return Feed(images, views)
        except DataError:
            pass  # an image of another size, or more bytes than expected from the short side: stream
    stream = StreamedImages(
        source,
        views,
        batch_size,
        seed,
        num_workers=data.num_workers,
        on_bad_image=data.on_bad_image,
        **settings,
    )
    return Feed(stream, views)
