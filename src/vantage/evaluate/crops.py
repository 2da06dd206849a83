"""Random views of labelled images, epoch after epoch, that linear classifiers are trained on.

b: images of a batch   s: side of a view in pixels   c: channels of a view
"""

from collections.abc import Callable, Iterator

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vantage import draws
from vantage.data.order import epoch_order, image_seed
from vantage.data.resident import decode_all, fits
from vantage.data.source import Source
from vantage.embedding import Work, in_threads
from vantage.errors import DataError
from vantage.progress import Teller
from vantage.views.augmentation import Augmentation

__all__ = ["Epoch", "counted", "epochs_of"]

_ORDER, _VIEWS = 0x11EA, 0x11EB  # what a seed is for

Epoch = Iterator[tuple[Int[Tensor, "b"], Float[Tensor, "b c s s"]]]
"""Numbers of the images and their views, batch by batch."""


def epochs_of(source: Source, view: Augmentation, batch: int, seed: int, work: Work) -> Callable[[int], Epoch]:
    """The views of an epoch, by its number. The last batch may be small, as in the protocols' code."""
    device = work.place()

    def order(epoch: int) -> tuple[Int[Tensor, "b"], ...]:
        return epoch_order(len(source), draws.mix(seed, _ORDER), epoch).split(batch)

    def generator(epoch: int, step: int) -> torch.Generator:
        return torch.Generator().manual_seed(draws.mix(seed, _VIEWS, epoch, step))

    def resident(epoch: int) -> Epoch:
        for step, rows in enumerate(order(epoch)):
            images = pixels[rows.to(pixels.device)]
            yield rows, view.batch(images, generator(epoch, step))

    def streamed(epoch: int) -> Epoch:
        def crop(number: int) -> UInt8[Tensor, "3 s s"]:
            own = torch.Generator().manual_seed(image_seed(seed, epoch, number))
            return view.crop_one(source.image(number), own)

        parts = order(epoch)
        crops = in_threads(crop, (rows.tolist() for rows in parts), work.workers)
        for step, (rows, part) in enumerate(zip(parts, crops, strict=True)):
            yield rows, view.finish(part.to(device, non_blocking=True), generator(epoch, step))

    if not fits(source, budget=work.resident_bytes):
        return streamed
    try:
        pixels = decode_all(source, workers=work.workers).to(device)
    except DataError:  # images of several sizes
        return streamed
    return resident


def counted(images: Epoch, teller: Teller, done: int, note: str) -> Epoch:
    """The same batches, each told when it was worked on, after `done` images before."""
    for rows, views in images:
        yield rows, views
        done += len(rows)
        teller.advance(done, note)
