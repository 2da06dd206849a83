"""Views that grow during a run: their sides, what is left alone, and what is refused."""

import pytest
import torch

from vantage.errors import UserError
from vantage.views import ProgressiveResizing


def test_views_grow_in_stages() -> None:
    resizing, view = ProgressiveResizing((16, 24), (0.5, 0.75)), torch.rand(2, 3, 32, 32)
    sides = [resizing(view, share).shape[-1] for share in (0.0, 0.49, 0.5, 0.74, 0.75, 1.0)]
    assert sides == [16, 16, 24, 24, 32, 32]
    assert resizing.stages() == ((0.0, 0.5), (0.5, 0.25), (0.75, 0.25))
    assert sum(share for _, share in ProgressiveResizing((8,), (1.0,)).stages()) == 1.0


def test_half_a_side_is_a_mean_of_four_pixels_each_way_in_the_same_layout() -> None:
    view = torch.rand(2, 3, 32, 32).contiguous(memory_format=torch.channels_last)
    small = ProgressiveResizing((16,), (0.5,))(view, 0.0)
    weight = torch.tensor([1.0, 3.0, 3.0, 1.0]) / 8  # a triangle of twice the width, at the pixels' centers
    across = sum(weight[n] * view[..., 1 + n : 29 + n : 2] for n in range(4))
    both = sum(weight[n] * across[..., 1 + n : 29 + n : 2, :] for n in range(4))  # pyright: ignore
    torch.testing.assert_close(small[..., 1:-1, 1:-1], both)
    assert small.is_contiguous(memory_format=torch.channels_last)


def test_small_views_and_patches_are_left_alone() -> None:
    resizing = ProgressiveResizing()
    for view in (torch.rand(2, 3, 16, 16), torch.rand(2, 9, 3, 20, 20)):
        assert resizing(view, 0.0) is view


@pytest.mark.parametrize(
    ("sides", "until"),
    [((), ()), ((16,), (0.5, 0.7)), ((24, 16), (0.2, 0.5)), ((16, 24), (0.5, 0.5)), ((0,), (0.5,)), ((16,), (1.5,))],
)
def test_stages_that_do_not_rise_are_refused(sides: tuple[int, ...], until: tuple[float, ...]) -> None:
    with pytest.raises(UserError, match="progressive resizing"):
        ProgressiveResizing(sides, until)


def test_work_follows_the_cost_of_small_views() -> None:
    free, fixed = (ProgressiveResizing((16,), (0.5,), fixed) for fixed in (0.0, 1.0))
    assert free.work(0.5, 32) == pytest.approx(0.2)  # a quarter of the cost in the first half: .125 of .625
    assert fixed.work(0.5, 32) == pytest.approx(0.5)
    for share in (-0.1, 1.1):
        with pytest.raises(UserError, match="a share is between 0 and 1"):
            ProgressiveResizing(fixed=share)
