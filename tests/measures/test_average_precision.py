"""Average precision against a loop over recalls, and against scikit-learn's, which does not interpolate."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from references.average_precision import by_loop
from sklearn.metrics import average_precision_score, precision_recall_curve
from torch import Tensor

from vantage.errors import UserError
from vantage.measures import average_precision


def pairs(draw: st.DrawFn) -> tuple[list[float], list[bool]]:
    count = draw(st.integers(1, 30))
    score = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0]), min_size=count, max_size=count))
    positive = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    positive[draw(st.integers(0, count - 1))] = True
    return score, positive


@given(st.composite(pairs)())
def test_it_equals_a_loop_and_is_not_below_scikit_learn(case: tuple[list[float], list[bool]]) -> None:
    score, positive = case
    actual = average_precision(torch.tensor(score), torch.tensor(positive))
    assert actual == pytest.approx(by_loop(score, positive))
    theirs = float(average_precision_score(positive, score))
    assert actual >= theirs - 1e-12
    precision, _, _ = precision_recall_curve(positive, score)
    if (precision[:-1][1:] >= precision[:-1][:-1]).all():  # falls with recall: nothing to interpolate
        assert actual == pytest.approx(theirs)


def test_it_differs_from_scikit_learn_where_precision_rises_again() -> None:
    score, positive = torch.tensor([4.0, 3, 2, 1]), torch.tensor([False, True, True, False])
    assert average_precision(score, positive) == pytest.approx(2 / 3)
    assert average_precision_score(positive, score) == pytest.approx((1 / 2 + 2 / 3) / 2)


def test_it_is_the_curve_of_scikit_learn_interpolated() -> None:
    generator = torch.Generator().manual_seed(3)
    score, positive = torch.randn(500, generator=generator), torch.rand(500, generator=generator) < 0.2
    precision, recall, _ = (torch.from_numpy(part.copy()) for part in precision_recall_curve(positive, score))
    best = precision[:-1].cummax(0).values  # from the highest recall to the lowest
    theirs = float(((recall[:-1] - recall[1:]) * best).sum())
    assert average_precision(score, positive) == pytest.approx(theirs)


def test_the_order_of_images_does_not_matter() -> None:
    score, positive = torch.tensor([1.0, 1.0, 1.0, 0.0]), torch.tensor([True, False, False, True])
    orders: list[Tensor] = [torch.arange(4), torch.tensor([1, 2, 0, 3]), torch.tensor([3, 2, 1, 0])]
    assert len({average_precision(score[order], positive[order]) for order in orders}) == 1


def test_no_positive_is_refused() -> None:
    with pytest.raises(UserError, match="needs a positive image, but none of the 3 is"):
        average_precision(torch.zeros(3), torch.zeros(3, dtype=torch.bool))
