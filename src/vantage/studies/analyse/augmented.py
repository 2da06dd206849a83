"""The vectors that images have under a run's own augmentations, through the encoder and its head.

n: images   a: augmentations of each   g: images of a part   d: width of the vectors   s: side of a crop in pixels
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source
from vantage.data.threads import prefetch
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.studies.analyse.learned import TrainedNetworks
from vantage.views.augmentation import ViewMaker, Views

__all__ = ["augmented", "draw_numbers"]


def draw_numbers(among: int, count: int, seed: int) -> Int[Tensor, "n"]:
    """`count` of the numbers from 0 to `among`, drawn without replacement, in order; all where there are no more."""
    generator = torch.Generator().manual_seed(draws.mix(seed, 0xA7A1))
    return torch.randperm(among, generator=generator)[:count].sort().values


@torch.no_grad()
def augmented(
    learned: TrainedNetworks,
    source: Source,
    image: Int[Tensor, "n"],
    view: int,
    augmentations: int,
    seed: int,
    work: Work,
) -> Iterator[Float[Tensor, "g a d"]]:
    """Unit vectors of `augmentations` independent draws of a run's view, for some images after the others.

    The trained networks encode them (of a run with a slow copy, not the copy), in evaluation mode. What is drawn for an
    image follows from `seed` and its number alone. Raises `UserError` where the run has no such view,
    `UnreadableImage` for an image that cannot be decoded.
    """
    maker, place = _only(learned.run.views, view)
    device = work.resolved_device()
    networks = learned.learner.to(device).networks

    def crop(number: int) -> tuple[UInt8[Tensor, "a 3 _ _"], ...]:
        generator = torch.Generator().manual_seed(draws.mix(seed, number, 0))
        pixels = source.image(number)
        drawn = [maker.crop(pixels, generator) for _ in range(augmentations)]
        return tuple(torch.stack(same) for same in zip(*drawn, strict=True))

    def finish(number: int, crops: tuple[UInt8[Tensor, "a 3 _ _"], ...]) -> Float[Tensor, "a ..."]:
        generator = torch.Generator().manual_seed(draws.mix(seed, number, 1))
        return maker.finish(tuple(part.to(device) for part in crops), generator)[place]

    many = max(1, work.batch_size // augmentations)
    numbers = image.tolist()
    parts = [numbers[start : start + many] for start in range(0, len(numbers), many)]
    work.progress.start(f"augmented views, {learned.name}", len(numbers))
    done = 0
    try:
        for part, crops in zip(parts, prefetch(crop, parts, work.num_workers, 1), strict=True):
            views = torch.cat([finish(*pair) for pair in zip(part, crops, strict=True)])
            if views.ndim == 4:
                views = views.contiguous(memory_format=torch.channels_last)
            yield networks.queries({view: views})[view].unflatten(0, (len(part), augmentations))
            done += len(part)
            work.progress.advance(done)
    finally:
        work.progress.stop()


def _only(maker: ViewMaker, view: int) -> tuple[ViewMaker, int]:
    """What makes that view, without the others where they can be left out, and its place in what is made."""
    if not 0 <= view < maker.count:
        raise UserError(f"view {view} was asked for, but the run makes {maker.count}: choose 0 to {maker.count - 1}")
    return (Views((maker.views[view],)), 0) if isinstance(maker, Views) else (maker, view)
