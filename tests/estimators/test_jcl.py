"""JCL: the formula with its covariance written out, its gradient, and the identities of the paper.

m: keys of an image   d: width
"""

import math

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from torch import Tensor
from torch.testing import assert_close

from vantage.estimators import JCL, Decoupled, InfoNCE
from vantage.estimators.jcl import bound
from vantage.positives import FixedViews, OtherViews
from vantage.records import Keys, Scores
from vantage.schedules import ByEpoch, Constant, Linear

SIZES = {"many": st.integers(1, 5), "pool": st.integers(1, 9), "seed": st.integers(0, 30)}


def problem(many: int, pool: int, seed: int, width: int = 5, rows: int = 3) -> tuple[Tensor, list[Tensor], Tensor]:
    """Queries, `many` keys of each, and negatives for all."""
    query = synthetic.vectors(rows, width, seed).requires_grad_()
    near = [
        torch.nn.functional.normalize(query.detach() + 0.8 * synthetic.vectors(rows, width, seed + 50 + m), dim=1)
        for m in range(many)
    ]
    return query, near, synthetic.vectors(pool, width, seed + 99)


def positives(query: Tensor, near: list[Tensor]) -> Scores:
    image = torch.arange(len(query))
    return OtherViews()(Keys(query, image), tuple(Keys(key, image) for key in near), Keys(query, image), 0)


def loss(part: JCL | InfoNCE, query: Tensor, near: list[Tensor], far: Tensor, step: int = 0) -> Tensor:
    rest = torch.logsumexp(query @ far.T / part.temperature, 1)
    return part(positives(query, near), synthetic.negatives(rest), step)


@given(**SIZES, strength=st.floats(0.0, 10.0), temperature=st.sampled_from([0.07, 0.2, 1.0]))
def test_jcl_is_eq_8_with_its_covariance_and_so_is_its_gradient(many, pool, seed, strength, temperature):
    query, near, far = problem(many, pool, seed)
    actual = loss(JCL(temperature, Constant(strength)), query, near, far)
    rows = [
        reference.jcl(query[i], torch.stack([key[i] for key in near]), list(far), temperature, strength)
        for i in range(len(query))
    ]
    expected = torch.stack(rows)
    assert_close(actual, expected, rtol=1e-11, atol=1e-10)
    ours, theirs = (torch.autograd.grad(value.sum(), query)[0] for value in (actual, expected))
    assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


@given(**SIZES, strength=st.floats(0.0, 10.0), temperature=st.sampled_from([0.07, 0.2, 1.0]))
def test_the_readable_formula_and_the_fast_gradient_are_one(many, pool, seed, strength, temperature):
    query, near, far = problem(many, pool, seed)
    cosine = positives(query, near).cosine.detach().requires_grad_()
    rest = torch.logsumexp(query.detach() @ far.T / temperature, 1).requires_grad_()
    fast = JCL(temperature, Constant(strength))(synthetic.table(cosine), synthetic.negatives(rest), 0)
    plain = bound(cosine, rest, temperature, strength)
    assert_close(fast, plain, rtol=1e-12, atol=1e-11)
    ours, theirs = (torch.autograd.grad(value.sum(), (cosine, rest)) for value in (fast, plain))
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("positions", [[0, 1, 3, 4, 5], [2, 4, 5], [1], []])
def test_dropped_positives_do_not_count(positions: list[int]):
    query, near, far = problem(6, 7, 3)
    scores, keep = positives(query, near), torch.zeros(3, 6, dtype=torch.bool)
    keep[1:, positions] = True
    keep[0] = True  # another row keeps all
    rest = torch.logsumexp(query @ far.T / 0.2, 1)
    actual = JCL(0.2, Constant(3.0))(Scores(scores.cosine, scores.key, keep), synthetic.negatives(rest), 0)
    positions_of_row = [list(range(6)), positions, positions]
    rows = [
        reference.jcl(query[i], torch.stack([near[m][i] for m in positions_of_row[i]]), list(far), 0.2, 3.0)
        if positions_of_row[i]
        else (query[i] * 0.0).sum()
        for i in range(3)
    ]
    assert_close(actual, torch.stack(rows), rtol=1e-12, atol=1e-12)
    ours, theirs = (torch.autograd.grad(value.sum(), query)[0] for value in (actual, torch.stack(rows)))
    assert_close(ours, theirs, rtol=1e-11, atol=1e-12)


@given(**SIZES, strength=st.floats(0.0, 10.0))
def test_1_without_spread_it_is_info_nce(many, pool, seed, strength):
    query, near, far = problem(many, pool, seed)
    one = loss(JCL(0.2, Constant(strength)), query, near[:1], far)
    assert torch.equal(one, loss(InfoNCE(0.2), query, near[:1], far)), "one key: MoCo's loss for every λ"
    mean = torch.stack(near).mean(0)
    at_mean = loss(InfoNCE(0.2), query, [mean], far)
    assert_close(loss(JCL(0.2, Constant(0.0)), query, near, far), at_mean, rtol=0, atol=1e-12)
    same = loss(JCL(0.2, Constant(strength)), query, [near[0]] * 4, far)
    assert_close(same, loss(InfoNCE(0.2), query, near[:1], far), rtol=0, atol=1e-12)


@given(**SIZES, strength=st.floats(0.0, 10.0))
def test_2_the_released_two_terms_give_the_same_number(many, pool, seed, strength):
    query, near, far = problem(many, pool, seed)
    keys = torch.stack(near, 1)
    centered = keys - keys.mean(1, keepdim=True)
    covariance = torch.einsum("bmi,bmj->bij", centered, centered) / many
    quadratic = torch.einsum("bi,bij,bj->b", query, covariance, query)
    cosine = torch.stack([(query * key).sum(1) for key in near], 1)
    assert_close(cosine.var(1, correction=0), quadratic, rtol=0, atol=1e-12)
    extra = strength / (2 * 0.2**2) * quadratic
    logits = torch.cat([(cosine.mean(1) / 0.2 + extra)[:, None], query @ far.T / 0.2], 1)
    cross_entropy = torch.nn.functional.cross_entropy(logits, torch.zeros(3, dtype=torch.int64), reduction="none")
    actual = loss(JCL(0.2, Constant(strength)), query, near, far)
    assert_close(actual, cross_entropy + extra, rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("seed", range(3))
def test_3_the_expected_loss_lies_between_no_spread_and_all_of_it(seed: int):
    """L(λ = 0) ≤ E ℓ(q, k) ≤ L(λ = 1) < L(λ > 1) for k ~ N(μ, Σ).

    By Monte Carlo over 400,000 logits of q·k, which is normal too, in antithetic pairs and with the pull itself as
    control variate (its mean is known). The tolerance is five standard errors, and the gaps are required to be larger.
    """
    query, near, far = problem(5, 40, seed, rows=1)
    keys = torch.stack(near, 1)[0]
    query, temperature = query.detach(), 0.2
    rest = torch.logsumexp(query @ far.T / temperature, 1)
    mean, deviation = (keys @ query[0]).mean() / temperature, (keys @ query[0]).std(correction=0) / temperature
    noise = torch.randn(200_000, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    sides = [torch.nn.functional.softplus(rest - (mean + sign * deviation * noise)) for sign in (1, -1)]
    pairs = (sides[0] + sides[1]) / 2  # antithetic: the linear part, the control, cancels exactly
    expected, error = float(pairs.mean()), float(pairs.std()) / len(pairs) ** 0.5
    below, at_one, above = (float(loss(JCL(temperature, Constant(s)), query, near, far)) for s in (0.0, 1.0, 2.0))
    assert expected - below > 5 * error and at_one - expected > 5 * error and above > at_one
    # The mean over the keys that there are lies above the loss at their mean too: the loss is convex in the logit.
    assert float(loss(InfoNCE(temperature), query, near, far)) >= below


@given(**SIZES, strength=st.floats(0.0, 10.0))
def test_4_the_closed_gradient(many, pool, seed, strength):
    """∂L/∂q = (p₀ − 1) μ/τ + p₀ λ Σq/τ² + Σ p_j k_j/τ."""
    t = 0.2
    query, near, far = problem(many, pool, seed)
    (gradient,) = torch.autograd.grad(loss(JCL(t, Constant(strength)), query, near, far).sum(), query)
    keys, query_values = torch.stack(near, 1), query.detach()
    mean = keys.mean(1)
    centered = keys - mean[:, None]
    covariance = torch.einsum("bmi,bmj,bj->bi", centered, centered, query_values) / many
    lift = (query_values * mean).sum(1) / t + strength / (2 * t**2) * (query_values * covariance).sum(1)
    share = torch.softmax(torch.cat([lift[:, None], query_values @ far.T / t], 1), 1)
    first = share[:, :1]
    expected = (first - 1) * mean / t + first * strength / t**2 * covariance + share[:, 1:] @ far / t
    assert_close(gradient, expected, rtol=0, atol=1e-10)


def test_5_a_boundless_strength_leaves_the_variance_alone():
    query, near, far = problem(4, 6, 3)
    rest = torch.logsumexp(query.detach() @ far.T / 0.2, 1).requires_grad_()
    strength = 1e6
    actual = JCL(0.2, Constant(strength))(positives(query, near), synthetic.negatives(rest), 0)
    variance = torch.stack([(query * key).sum(1) for key in near], 1).var(1, correction=0)
    assert_close(actual, strength / (2 * 0.2**2) * variance, rtol=1e-9, atol=0)
    (to_negatives,) = torch.autograd.grad(actual.sum(), rest, retain_graph=True)
    assert to_negatives.abs().max() == 0


@given(**SIZES)
def test_6_a_joint_rotation_and_the_order_of_keys_change_nothing(many, pool, seed):
    query, near, far = problem(many, pool, seed)
    turn = torch.linalg.qr(synthetic.vectors(5, 5, seed + 1)).Q
    plain = loss(JCL(), query, near, far)
    rotated = loss(JCL(), query @ turn, [key @ turn for key in near], far @ turn)
    reordered = loss(JCL(), query, near[::-1], far.flip(0))
    assert_close(rotated, plain, rtol=0, atol=1e-11)
    assert_close(reordered, plain, rtol=0, atol=1e-12)


def test_the_strength_follows_the_step():
    query, near, far = problem(4, 6, 3)
    ramp = JCL(0.2, ByEpoch(Linear(0.2, 2.0, 9), steps_per_epoch=3))  # the release's λ (e + 1) / E with λ = 2, E = 10
    for step in (0, 2, 3, 29, 40):
        strength = 2.0 * (min(step // 3, 9) + 1) / 10
        assert_close(
            loss(ramp, query, near, far, step), loss(JCL(0.2, Constant(strength)), query, near, far), rtol=0, atol=1e-12
        )


def test_14_without_the_positive_the_pull_never_rests():
    """L = log Σ_ring e^s − pos, so ∂L/∂pos = −1, in units of logits, however close the positive."""
    a = torch.tensor([[-0.9], [0.0], [1.0]], dtype=torch.float64, requires_grad=True)
    rest = torch.tensor([3.0, 0.0, -20.0], dtype=torch.float64)
    actual = Decoupled(0.1)(synthetic.table(a), synthetic.negatives(rest), 0)
    assert torch.equal(actual.detach(), rest - a.detach()[:, 0] / 0.1)
    (gradient,) = torch.autograd.grad(actual.sum(), a)
    assert_close(gradient * 0.1, -torch.ones_like(a), rtol=0, atol=1e-15)
    assert -math.inf < float(actual[2].detach()) < 0


def test_decoupled_equals_its_loop():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.rand(4, n, generator=generator, dtype=torch.float64).requires_grad_() for n in (3, 6))
    keep_a, keep_b = torch.rand(4, 3, generator=generator) < 0.6, torch.rand(4, 6, generator=generator) < 0.6
    keep_a[0], keep_b[1], keep_a[1] = False, False, True
    near = [[a[i, j] for j in range(3) if keep_a[i, j]] for i in range(4)]
    far = [[b[i, j] for j in range(6) if keep_b[i, j]] for i in range(4)]
    logits = torch.where(keep_b, b / 0.3, -1e300)
    rest = torch.where(keep_b.any(1), torch.logsumexp(logits, 1), -torch.inf)
    actual = Decoupled(0.3)(synthetic.table(a, keep_a), synthetic.negatives(rest), 0)
    expected = torch.stack(reference.decoupled(near, far, 0.3))
    assert_close(actual, expected, rtol=0, atol=1e-12)
    ours, theirs = (torch.autograd.grad(value.sum(), (a, b)) for value in (actual, expected))
    assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_4_fixed_views_give_their_keys_no_gradient():
    """Whoever encodes them: the same loss, and the same gradient to the query."""
    query, near, far = problem(3, 4, 0)
    keys = [key.clone().requires_grad_() for key in near]
    image, rest = torch.arange(3), torch.logsumexp(query.detach() @ far.T / 0.2, 1)
    gradients = []
    for part in (OtherViews(), FixedViews()):
        scores = part(Keys(query, image), tuple(Keys(key, image) for key in keys), Keys(query, image), 0)
        loss = JCL()(scores, synthetic.negatives(rest), 0).sum()
        gradients.append((loss.detach(), *torch.autograd.grad(loss, (query, *keys), allow_unused=True)))
    (loss_of, to_query, *to_keys), (loss_of_fixed, to_the_same, *to_fixed) = gradients
    assert torch.equal(loss_of, loss_of_fixed) and torch.equal(to_query, to_the_same)
    assert all(gradient.any() for gradient in to_keys) and to_fixed == [None] * len(keys)
