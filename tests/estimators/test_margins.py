"""Margins of InfoNCE and ArcNCE: the loop, and the identities by their numbers in the project's list."""

import math

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from test_estimators import cosines, losses, mask
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.estimators import ArcNCE, InfoNCE


@given(seed=st.integers(0, 99), margin=st.floats(0.01, 1.0), temperature=st.sampled_from([0.05, 0.1, 1.0]))
def test_20_margin_raises_the_loss_by_at_most_m_over_tau(seed: int, margin: float, temperature: float):
    positive, partition = synthetic.table(cosines(4, 1, seed)), cosines(4, 1, seed + 1)[:, 0] / temperature + 3.0
    plain = InfoNCE(temperature)(positive, synthetic.negatives(partition), 0)
    logits = torch.stack([positive.cosine[:, 0] / temperature, partition], 1)
    cross_entropy = torch.nn.functional.cross_entropy(logits, torch.zeros(4, dtype=torch.int64), reduction="none")
    assert_close(plain, cross_entropy, rtol=0, atol=1e-12)
    with_margin, higher = (
        InfoNCE(temperature, m)(positive, synthetic.negatives(partition), 0) for m in (margin, margin + 0.1)
    )
    assert ((with_margin - plain) >= 0).all() and ((with_margin - plain) <= margin / temperature + 1e-12).all()
    assert (higher >= with_margin).all()
    closed_form = torch.nn.functional.softplus(
        partition - (positive.cosine[:, 0] - margin) / temperature, threshold=100.0
    )
    assert_close(with_margin, closed_form, rtol=0, atol=1e-12)


@pytest.mark.parametrize("margin", [0.0, 0.5, -0.5, 1.5, -1.3])
@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_arc_nce_equals_its_loop(margin: float, temperature: float):
    a, b = (cosines(6, 40, 0) * 0.999).requires_grad_(), cosines(6, 7, 1).requires_grad_()
    keep_a, keep_b = mask(6, 40, 2), mask(6, 7, 3)
    actual = losses(ArcNCE(temperature, margin), synthetic.table(a, keep_a), synthetic.table(b, keep_b))
    near = [[a[i, j] for j in range(40) if keep_a[i, j]] for i in range(6)]
    far = [[b[i, j] for j in range(7) if keep_b[i, j]] for i in range(6)]
    expected = torch.stack(reference.arc_nce(near, far, temperature, margin))
    assert_close(actual, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(
        torch.autograd.grad(actual.sum(), (a, b)), torch.autograd.grad(expected.sum(), (a, b)), strict=True
    ):
        assert_close(ours, theirs, rtol=0, atol=1e-9)


def test_20_no_arc_is_info_nce_exactly():
    a, rest = cosines(50, 3, 0), cosines(50, 1, 1)[:, 0] * 9
    a[0] = torch.tensor([1.0, -1.0, 0.0])
    plain, arc = (part(synthetic.table(a), synthetic.negatives(rest), 0) for part in (InfoNCE(0.1), ArcNCE(0.1, 0.0)))
    assert torch.equal(plain, arc)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("margin", [0.0, 0.5, -0.5, 1.57, -1.57])
def test_the_arc_has_a_finite_slope_and_falls_with_the_angle(margin: float, dtype: torch.dtype):
    """Also at cosines of ±1 and just beyond, as rounding makes them."""
    line = torch.linspace(-1.0, 1.0, 20_001, dtype=torch.float64).to(dtype)
    edges = torch.tensor([-1.000001, 1.000001], dtype=dtype)
    cosine = torch.cat([line, edges]).requires_grad_()
    actual = ArcNCE(1.0, margin)(
        synthetic.table(cosine[:, None]), synthetic.negatives(torch.zeros(len(cosine), dtype=dtype)), 0
    )
    (slope,) = torch.autograd.grad(actual.sum(), cosine)
    assert torch.isfinite(actual).all() and torch.isfinite(slope).all() and (slope <= 0).all()
    assert (actual[: len(line)].diff() <= 1e-6).all()


def test_an_angle_beyond_a_quarter_turn_is_refused():
    with pytest.raises(UserError, match="radians"):
        ArcNCE(0.1, 1.6)


@given(seed=st.integers(0, 99), times=st.integers(1, 9))
def test_21_a_margin_repeats_every_negative(seed: int, times: int):
    positive, far = synthetic.table(cosines(3, 1, seed)), cosines(3, 5, seed + 1)
    margin = losses(InfoNCE(0.1, 0.1 * math.log(times)), positive, synthetic.table(far))
    with_repeats = losses(InfoNCE(0.1), positive, synthetic.table(far.repeat(1, times)))
    assert_close(margin, with_repeats, rtol=0, atol=1e-11)


def test_21_a_negative_margin_weakens_negatives():
    positive, far = synthetic.table(cosines(3, 1, 0)), cosines(3, 5, 1)
    margin = losses(InfoNCE(0.1, -0.5), positive, synthetic.table(far))
    with_weaker_negatives = InfoNCE(0.1)(positive, synthetic.negatives(torch.logsumexp(far / 0.1, 1) - 5.0), 0)
    assert_close(margin, with_weaker_negatives, rtol=0, atol=1e-12)
