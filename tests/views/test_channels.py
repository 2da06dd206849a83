"""Views that are channels of one image."""

import pytest
import torch
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.views import Channels, Lab, YDbDr, cmc_views, pycontrast_c_views


def images(count: int = 4, side: int = 40) -> torch.Tensor:
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    "views", [cmc_views(32), pycontrast_c_views(32), cmc_views(64, YDbDr())], ids=["cmc", "C", "YDbDr"]
)
def test_lightness_and_color_of_one_crop(views: Channels):
    """Both views are channels of the very same image: together they are its view."""
    batch = views.batch(images(), generator(1))
    size = views.view.crop.size
    assert [view.shape for view in batch] == [(4, 1, size, size), (4, 2, size, size)] and views.count == 2
    assert torch.equal(torch.cat(batch, 1), views.view.batch(images(), generator(1)))


def test_crops_of_workers_become_the_same_views():
    """`crop` on a worker and `finish` on the device: one crop serves both views."""
    views = cmc_views(32)
    crops = [views.crop(image, generator(number)) for number, image in enumerate(images())]
    assert all(len(crop) == 1 for crop in crops)
    joint = torch.stack([crop[0] for crop in crops])
    batch = views.finish((joint,), generator(9))
    assert_close(torch.cat(batch, 1), views.view.finish(joint, generator(9)))
    with pytest.raises(UserError, match="one batch of crops"):
        views.finish((joint, joint), generator(9))


def test_other_channels_may_be_split():
    views = Channels(cmc_views(32).view, ((0, 1), (2,), (0,)))
    assert [view.shape[1] for view in views.batch(images(), generator(0))] == [2, 1, 1]
    for wrong in ((), ((0,), ()), ((0,), (3,))):
        with pytest.raises(UserError, match="some of the channels"):
            Channels(views.view, wrong)


def test_small_images_are_not_cut_to_a_few_pixels():
    assert cmc_views(32).view.crop.scale == (0.2, 1.0) and cmc_views(224).view.crop.scale == (0.08, 1.0)
    assert cmc_views(224).view.operations[1].space == Lab()  # pyright: ignore
