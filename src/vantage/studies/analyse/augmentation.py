"""The vectors that images have under a run's own augmentations, through the encoder and its head.

n: images   a: augmentations of each   g: images of a part   d: width of the vectors
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source
from vantage.data.threads import prefetch
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks
from vantage.progress import task
from vantage.views.augmentation import ViewMaker, Views

__all__ = ["augmented_vectors", "draw_numbers"]


def draw_numbers(among: int, count: int, seed: int) -> Int[Tensor, "n"]:
    """`count` of the numbers below `among`, drawn without replacement and sorted; all of them if there are fewer."""
    return draws.permutation(among, draws.mix(seed, draws.Purpose.ANALYZED_IMAGES))[:count].sort().values


@torch.no_grad()
def augmented_vectors(
    model: TrainedNetworks,
    source: Source,
    image: Int[Tensor, "n"],
    view: int,
    augmentations: int,
    seed: int,
    work: Work,
) -> Iterator[Float[Tensor, "g a d"]]:
    """Unit vectors of `augmentations` independent draws of a run's view, for some of the images at a time.

    The trained networks (not their moving averages) encode them, in evaluation mode. The draws for an image depend only
    on `seed` and its number. Raises `UserError` if the run has no such view, `UnreadableImage` for an image that cannot
    be decoded.
    """
    device = work.resolved_device()
    networks = model.learner.to(device).networks
    draw = _Draw(*_single_view(model.run.views, view), source, augmentations, seed, device)
    size, numbers, count = max(1, work.batch_size // augmentations), image.tolist(), 0
    parts = [numbers[start : start + size] for start in range(0, len(numbers), size)]
    with task(work.progress, f"augmented views, {model.name}", len(numbers)):
        for part, crops in zip(parts, prefetch(draw.crop, parts, work.num_workers, 1), strict=True):
            views = torch.cat([draw.finish(*pair) for pair in zip(part, crops, strict=True)])
            if views.ndim == 4:
                views = views.contiguous(memory_format=torch.channels_last)
            yield networks.queries({view: views})[view].unflatten(0, (len(part), augmentations))
            count += len(part)
            work.progress.advance(count)


@dataclass(frozen=True)
class _Draw:
    """Draws one view of an image several times."""

    maker: ViewMaker
    place: int
    source: Source
    augmentations: int
    seed: int
    device: torch.device

    def crop(self, number: int) -> tuple[UInt8[Tensor, "a 3 _ _"], ...]:
        generator = torch.Generator().manual_seed(draws.mix(self.seed, number, 0))
        pixels = self.source.image(number)
        crops = [self.maker.crop(pixels, generator) for _ in range(self.augmentations)]
        return tuple(torch.stack(same) for same in zip(*crops, strict=True))

    def finish(self, number: int, crops: tuple[UInt8[Tensor, "a 3 _ _"], ...]) -> Float[Tensor, "a ..."]:
        generator = torch.Generator().manual_seed(draws.mix(self.seed, number, 1))
        return self.maker.finish(tuple(part.to(self.device) for part in crops), generator)[self.place]


def _single_view(maker: ViewMaker, view: int) -> tuple[ViewMaker, int]:
    """A maker of the view, without the other views if they can be separated, and its position in the output."""
    if not 0 <= view < maker.count:
        raise UserError(f"view {view} was asked for, but the run makes {maker.count}: choose 0 to {maker.count - 1}")
    return (Views((maker.views[view],)), 0) if isinstance(maker, Views) else (maker, view)
