"""Debiased and HCL: their loops, and how they relate to each other and to InfoNCE."""

import itertools

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from test_estimators import cosines, losses, mask
from torch import Tensor
from torch.testing import assert_close

from vantage.errors import UserError
from vantage.estimators import HCL, Debiased, Estimator, InfoNCE, TableEstimator


@pytest.mark.parametrize(("hardness", "prior"), [(0.0, 0.0), (0.0, 0.1), (1.0, 0.1), (0.5, 0.02), (2.0, 0.5)])
@pytest.mark.parametrize("temperature", [0.1, 0.5, 1.0])
def test_debiased_and_hcl_equal_their_loops(temperature: float, hardness: float, prior: float):
    a, b = cosines(6, 3, 0).requires_grad_(), cosines(6, 7, 1).requires_grad_()
    keep_a, keep_b = mask(6, 3, 2), mask(6, 7, 3)
    near = [[a[i, j] for j in range(3) if keep_a[i, j]] for i in range(6)]
    far = [[b[i, j] for j in range(7) if keep_b[i, j]] for i in range(6)]
    cases: list[tuple[Estimator | TableEstimator, list[Tensor]]] = [
        (HCL(temperature, hardness, prior), reference.hcl(near, far, temperature, hardness, prior)),
        (Debiased(temperature, prior), reference.debiased(near, far, temperature, prior)),
    ]
    for part, loop in cases:
        actual, expected = losses(part, synthetic.table(a, keep_a), synthetic.table(b, keep_b)), torch.stack(loop)
        assert_close(actual, expected, rtol=0, atol=1e-10)
        ours, theirs = (torch.autograd.grad(value.sum(), (a, b), allow_unused=True) for value in (actual, expected))
        for one, other in zip(ours, theirs, strict=True):
            assert one is not None and other is not None
            assert_close(one, other, rtol=0, atol=1e-9)


@given(seed=st.integers(0, 99), temperature=st.sampled_from([0.07, 0.5, 1.0]), prior=st.sampled_from([0.0, 0.05, 0.1]))
def test_hcl_without_hardness_is_debiased_and_debiased_without_prior_is_info_nce(seed: int, temperature, prior):
    """N times the mean form of g is the sum form of InfoNCE."""
    positive, negative = (
        synthetic.table(cosines(4, 2, seed)),
        synthetic.table(cosines(4, 9, seed + 1), mask(4, 9, seed)),
    )
    flat = losses(HCL(temperature, 0.0, prior), positive, negative)
    assert_close(flat, losses(Debiased(temperature, prior), positive, negative), rtol=1e-12, atol=1e-12)
    plain = losses(InfoNCE(temperature), positive, negative)
    assert torch.equal(losses(Debiased(temperature, 0.0), positive, negative), plain)
    assert_close(losses(HCL(temperature, 0.0, 0.0), positive, negative), plain, rtol=1e-12, atol=1e-12)


@given(seed=st.integers(0, 99), temperature=st.sampled_from([0.1, 0.5]))
def test_harder_negatives_count_more_and_a_prior_weakens_them(seed: int, temperature: float):
    positive, negative = synthetic.table(cosines(4, 1, seed)), synthetic.table(cosines(4, 9, seed + 1))
    course = [losses(HCL(temperature, hardness, 0.0), positive, negative) for hardness in (0.0, 0.5, 1.0, 4.0)]
    assert all((after >= before - 1e-12).all() for before, after in itertools.pairwise(course))
    least = 9 * torch.exp(torch.tensor(-1 / temperature).double())
    floor = torch.nn.functional.softplus(least.log() - positive.cosine[:, 0] / temperature, threshold=100.0)
    assert (losses(Debiased(temperature, 0.3), positive, negative) >= floor - 1e-12).all(), "never below the floor"


@pytest.mark.parametrize("part", [Debiased(1e-3), HCL(1e-3), HCL(1e3, 50.0)], ids=str)
def test_extreme_temperatures_give_finite_losses_and_gradients(part: Estimator | TableEstimator):
    a, b = cosines(5, 2, 0).float().requires_grad_(), cosines(5, 9, 1).float().requires_grad_()
    actual = losses(part, synthetic.table(a), synthetic.table(b))
    assert torch.isfinite(actual).all()
    assert all(torch.isfinite(slope).all() for slope in torch.autograd.grad(actual.sum(), (a, b)))


def test_shares_and_weights_that_make_no_sense_are_refused():
    for make in (lambda: Debiased(prior=1.0), lambda: HCL(prior=-0.1), lambda: HCL(hardness=-1.0)):
        with pytest.raises(UserError, match="give"):
            make()
