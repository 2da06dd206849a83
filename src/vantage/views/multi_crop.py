"""More views of each image than are worth encoding at full size: some whole views, and smaller ones beside them."""

from dataclasses import replace

from vantage.errors import UserError
from vantage.views.augmentation import Views
from vantage.views.operations.crops import RandomResizedCrop

__all__ = ["multi_crop_views"]


def multi_crop_views(views: Views, count: int = 6, size: int = 96, scale: tuple[float, float] = (0.05, 0.14)) -> Views:
    """The views given, and after them `count` views of `size` pixels, made like the first but of smaller parts of the
    image: multi-crop (SwAV, Caron et al., arXiv 2006.09882, section 3.2 and appendix).

    `scale` is the least and largest share of the image's area that a small view shows. SwAV has two views of 224 pixels
    from .14 of the image on and six of 96; the views given keep their own crops. Which views ask and which answer is
    the branches' affair: usually the small ones ask only (`vantage.recipes.with_small_crops`). Raises `UserError` for
    fewer than one small view.
    """
    if count < 1:
        raise UserError(f"multi-crop with {count} small views of each image: give at least 1")
    first = views.views[0]
    small = replace(first, crop=RandomResizedCrop(size, scale))
    return Views((*views.views, *(small,) * count))
