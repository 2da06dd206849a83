"""Multi-crop: small views of each image are queries for the keys of its whole views (SwAV, arXiv 2006.09882)."""

from dataclasses import replace

from vantage.branch import Branch, owners
from vantage.errors import UserError
from vantage.memory import StoreOf
from vantage.recipes.backbones import is_small
from vantage.recipes.moco import moco_v2
from vantage.schedules import Constant
from vantage.training.run import Run
from vantage.views import Views, multi_crop_views

__all__ = ["moco_v2_multi_crop", "with_small_crops"]


def moco_v2_multi_crop(size: int = 224) -> Run:
    """MoCo v2 with six small views as further queries.

    `moco_v2` with multi-crop (SwAV, Caron et al., arXiv 2006.09882): six small views of each image are queries too,
    with the same key and the same queue, so that an image has seven queries and one key.

    The side of small views is 3/7 of `size` (96 of 224 pixels), and they show .05 to .14 of the image's area. Up to 96
    pixels they show .1 to .3 of it, since a twentieth of an image of 32 pixels has a side of only 7 pixels.
    """
    scale = (0.1, 0.3) if is_small(size) else (0.05, 0.14)
    run = with_small_crops(moco_v2(size), 6, max(1, round(size * 3 / 7)), scale)
    return replace(run, recipe="moco_v2_multi_crop")


def with_small_crops(run: Run, count: int = 6, size: int = 96, scale: tuple[float, float] = (0.05, 0.14)) -> Run:
    """A run with `count` more queries in each branch: small views of `size` pixels, made like its first view. Each
    shows a share of the image's area between the two in `scale`. This is multi-crop (arXiv 2006.09882) for any method
    on whole images.

    >>> import vantage
    >>> run = vantage.with_small_crops(vantage.simclr(32), count=4, size=14, scale=(0.1, 0.3))
    >>> run.views.count, len(run.branches)
    (6, 10)

    Each branch stays, and gets `count` copies that use its store and keys, but have a small view as the query. Small
    views are never keys and never remembered. A branch and its copies share its weight equally, so the loss is the mean
    over whole and small queries. Raises `UserError` for views that are not whole images (channels, patches,
    jigsaws), and for weights that change during a run.
    """
    if not isinstance(run.views, Views):
        raise UserError(
            f"multi-crop adds small views to whole ones, but {run.recipe} makes {type(run.views).__name__}: take a"
            " recipe whose views are vantage.views.Views, such as moco_v2 or simclr"
        )
    owner, whole = owners(run.branches), run.views.count
    whole_branches = tuple(replace(branch, weight=_share(branch, 1 + count)) for branch in run.branches)
    small_queries = tuple(
        replace(branch, memory=StoreOf(owner[number]), query=whole + small)
        for number, branch in enumerate(whole_branches)
        for small in range(count)
    )
    return replace(
        run, views=multi_crop_views(run.views, count, size, scale), branches=(*whole_branches, *small_queries)
    )


def _share(branch: Branch, parts: int) -> Constant:
    """One of several equal parts of a branch's weight."""
    if not isinstance(branch.weight, Constant):
        raise UserError(f"multi-crop shares a branch's weight equally, but it is {branch.weight}: give a Constant")
    return Constant(branch.weight.value / parts)
