"""Make views of two real images before the first step: a user's own view maker may make other ones than it says."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from vantage.data import Source
from vantage.errors import UnreadableImage, UserError, naming
from vantage.training.run import Run

__all__ = ["SAMPLES", "some_images", "some_views"]

SAMPLES = 2
"""Real images that the views and the networks are tried on."""

_SIDE = 512  # at most so many pixels of them are tried as images in memory are


def some_images(source: Source) -> list[Tensor]:
    """The first readable images of a source."""
    images: list[Tensor] = []
    for number in range(len(source)):
        try:
            images.append(source.image(number))
        except UnreadableImage:
            continue
        if len(images) == SAMPLES:
            break
    return images


def some_views(run: Run, images: Sequence[Tensor]) -> list[Tensor]:
    """The views of some images, as they are made where images are decoded. Raises `UserError` if they cannot be made,
    if they are drawn by torch's default generator, if they are not as many as the view maker says, or if `batch`, for
    images in memory, makes others."""
    generator, kind = torch.Generator().manual_seed(run.seed), type(run.views).__name__
    state = torch.random.get_rng_state()
    with naming(f"{kind} cannot make views of these images"):
        crops = [run.views.crop(image, generator) for image in images]
        views = run.views.finish(tuple(map(torch.stack, zip(*crops, strict=True))), generator)
        whole = run.views.batch(images[0][None, :, :_SIDE, :_SIDE], generator)
    if not torch.equal(state, torch.random.get_rng_state()):
        raise UserError(
            f"{kind} draws from torch's default generator, which differs between processes, so that a resumed run would"
            " see other views: draw from the generator that its methods get. What takes no generator, as torchvision's"
            " transforms do, can draw inside vantage.draws.torch_seed(number), with a number from that generator"
        )
    _check(views, len(images), run.views.count, f"{kind}.finish")
    _check(whole, 1, run.views.count, f"{kind}.batch")
    shapes = [[tuple(view.shape[1:]) for view in each] for each in (views, whole)]
    if shapes[0] != shapes[1]:
        raise UserError(f"{kind}.finish makes views of the shapes {shapes[0]}, and batch {shapes[1]}: make the same")
    return views


def _check(views: Any, images: int, count: int, method: str) -> None:
    if not isinstance(views, list | tuple) or len(views) != count:
        found = f"{len(views)}" if isinstance(views, list | tuple) else f"a {type(views).__name__}"
        raise UserError(f"{method} returns {found} in place of a list of {count} views, which is the count")
    for number, view in enumerate(views):
        if not isinstance(view, Tensor) or not view.is_floating_point() or view.ndim < 2 or len(view) != images:
            found = f"{view.dtype} of shape {tuple(view.shape)}" if isinstance(view, Tensor) else type(view).__name__
            raise UserError(
                f"{method}: view {number} of {images} image(s) is {found}: make floats, a row for each image"
            )
        if not torch.isfinite(view).all():
            raise UserError(f"{method}: view {number} has values that are no finite numbers")
