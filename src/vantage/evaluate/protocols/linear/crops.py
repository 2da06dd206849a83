"""Random views of labeled images, epoch by epoch, to train classifiers on.

b: images of a batch   m: those of this process   s: side of a view in pixels   c: channels of a view
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vantage import draws
from vantage.data.order import epoch_order, image_seed
from vantage.data.resident import decode_all, fits_in_memory
from vantage.data.sources.source import Source
from vantage.encoding import Work, in_threads
from vantage.errors import DataError
from vantage.evaluate.protocols.linear.plan import TrainingView
from vantage.processes.sharing import own_slice
from vantage.progress import Progress, counting
from vantage.views.operations.share import ShareGenerator

__all__ = ["Epoch", "Epochs", "report_progress", "epochs_of"]


Epoch = Iterator[tuple[Int[Tensor, "b"], Float[Tensor, "m c s s"]]]
"""Numbers of the images, batch by batch, with the views of those that `own_slice` gives this process."""


@dataclass(frozen=True)
class Epochs:
    """The views of an epoch, by its number."""

    views: Callable[[int], Epoch]
    """Makes the views of an epoch."""
    crop_method: str
    """How crops are drawn, in words: with the same seed, images in memory get other crops than streamed ones."""

    def __call__(self, epoch: int) -> Epoch:
        """The views of one epoch."""
        return self.views(epoch)


def epochs_of(source: Source, view: TrainingView, batch: int, seed: int, work: Work) -> Epochs:
    """Random views of all images. The last batch may be smaller, as in the protocols' own code. The processes share
    each batch, with the views that one process makes."""
    device = work.resolved_device()

    def order(epoch: int) -> tuple[Int[Tensor, "b"], ...]:
        return epoch_order(len(source), draws.mix(seed, draws.Purpose.LINEAR_ORDER), epoch).split(batch)

    def generator(epoch: int, step: int, count: int) -> torch.Generator:
        generator_of_share, share = ShareGenerator(), own_slice(count)
        generator_of_share.share = (share.start, share.stop, count)
        return generator_of_share.manual_seed(draws.mix(seed, draws.Purpose.LINEAR_VIEWS, epoch, step))

    def from_memory(epoch: int) -> Epoch:
        for step, rows in enumerate(order(epoch)):
            images = pixels[rows[own_slice(len(rows))].to(pixels.device)]
            yield rows, view.batch(images, generator(epoch, step, len(rows)))

    def from_stream(epoch: int) -> Epoch:
        def crop(number: int) -> UInt8[Tensor, "3 s s"]:
            image_generator = torch.Generator().manual_seed(image_seed(seed, epoch, number))
            return view.crop_one(source.image(number), image_generator)

        parts = order(epoch)
        crops = in_threads(crop, (rows[own_slice(len(rows))].tolist() for rows in parts), work.num_workers)
        for step, (rows, part) in enumerate(zip(parts, crops, strict=True)):
            yield rows, view.finish(part.to(device, non_blocking=True), generator(epoch, step, len(rows)))

    streamed = Epochs(from_stream, "image by image: streamed")
    if not fits_in_memory(source, budget=work.resident_bytes):
        return streamed
    try:
        with counting(work.progress, "decoding images") as progress:
            pixels = decode_all(source, num_workers=work.num_workers, progress=progress).to(device)
    except DataError:  # images of several sizes
        return streamed
    return Epochs(from_memory, "batch by batch: images in memory")


def report_progress(images: Epoch, progress: Progress, count: int, note: str) -> Epoch:
    """The same batches. After each has been used, progress is reported, counted from `count` images."""
    for rows, views in images:
        yield rows, views
        count += len(rows)
        progress.advance(count, note)
