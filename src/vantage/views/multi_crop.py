"""Multi-crop: a few views of each image at full size, and more at a smaller one."""

from dataclasses import replace

from vantage.errors import UserError
from vantage.views.augmentation import Views
from vantage.views.operations.crops import RandomResizedCrop

__all__ = ["multi_crop_views"]


def multi_crop_views(views: Views, count: int = 6, size: int = 96, scale: tuple[float, float] = (0.05, 0.14)) -> Views:
    """`views`, and after them `count` random resized crops of `size` pixels with the operations of the first view:
    multi-crop (SwAV, Caron et al., arXiv 2006.09882, section 3.2 and appendix).

    `scale` is the least and largest share of the image's area that a small view shows. SwAV has two views of 224 pixels
    from at least .14 of the image and six of 96; here `views` keep their own crops. The branches decide which views are
    queries and which are keys: usually the small ones are queries only (`vantage.with_small_crops`). Raises `UserError`
    for fewer than one small view.
    """
    if count < 1:
        raise UserError(f"multi-crop with {count} small views of each image: give at least 1")
    first = views.views[0]
    small = replace(first, crop=RandomResizedCrop(size, scale))
    return Views((*views.views, *(small,) * count))
