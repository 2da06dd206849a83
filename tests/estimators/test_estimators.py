"""The contract of estimators, their loop references, and the identities of the papers."""

import itertools
import math
from dataclasses import is_dataclass, replace

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from torch import Tensor
from torch.testing import assert_close

from vantage import estimators, schedules
from vantage.errors import UserError
from vantage.estimators import (
    HCL,
    JCL,
    NCE,
    ArcNCE,
    Debiased,
    Decoupled,
    Estimator,
    EstimatorChoice,
    InfoNCE,
    LocalAggregation,
    MeanAggregation,
    MeanNeighbors,
    NCEState,
    PooledNCE,
    SoftNeighbors,
    TableEstimator,
)
from vantage.records import Negatives, Scores
from vantage.schedules import Constant, Linear

CONTRACT: tuple[Estimator | TableEstimator | EstimatorChoice, ...] = (
    InfoNCE(),
    InfoNCE(0.07),
    InfoNCE(0.1, margin=0.3),
    InfoNCE(0.1, margin=-0.5),
    ArcNCE(),
    ArcNCE(0.1, margin=0.4),
    ArcNCE(0.1, margin=-0.5),
    NCE(),
    NCE(0.1),
    JCL(),
    JCL(0.1, Constant(0.0)),
    JCL(0.5, Linear(3.0, 1.0, 10)),
    Decoupled(),
    Decoupled(0.1),
    Debiased(),
    Debiased(prior=0.0),
    Debiased(0.2, prior=0.02),
    HCL(),
    HCL(hardness=0.0, prior=0.0),
    HCL(0.2, hardness=0.5, prior=0.02),
    LocalAggregation(),
    LocalAggregation(0.2),
    MeanAggregation(),
    MeanAggregation(0.2),
    PooledNCE(),
    PooledNCE(0.2),
    SoftNeighbors(),
    SoftNeighbors(0.5),
    MeanNeighbors(),
    MeanNeighbors(0.5),
)
"""At least one instance of every estimator."""

every_estimator = pytest.mark.parametrize("part", CONTRACT, ids=str)


def losses(
    part: Estimator | TableEstimator | EstimatorChoice, positive: Scores, negative: Scores, images: int = 50
) -> Tensor:
    """What a branch does: negatives summed, or as a table."""
    if isinstance(part, EstimatorChoice):
        state = part.build(images)
        assert isinstance(state, NCEState)
        state.log_normalizer.fill_(4.0)
        return state(positive, negative, 0)
    if isinstance(part, TableEstimator):
        return part(positive, negative, 0)
    rows = negative.keep.any(1)
    logits = torch.where(rows[:, None], negative.logits(part.temperature), 0.0)
    log_sum = torch.where(rows, torch.logsumexp(logits, 1), -torch.inf)
    return part(positive, Negatives(log_sum, negative.count), 0)


def cosines(rows: int, columns: int, seed: int) -> Tensor:
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 2 - 1


def mask(rows: int, columns: int, seed: int) -> Tensor:
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(seed)) < 0.6


def test_every_estimator_is_in_the_contract():
    public = {getattr(estimators, name) for name in estimators.__all__}
    assert {part for part in public if is_dataclass(part)} == {type(part) for part in CONTRACT}


@every_estimator
def test_a_part_is_its_own_configuration(part):
    kinds = isinstance(part, TableEstimator), isinstance(part, EstimatorChoice), isinstance(part, Estimator)
    assert kinds in ((True, False, True), (False, True, False), (False, False, True))
    assert replace(part) == part and eval(repr(part), vars(estimators) | vars(schedules)) == part
    with pytest.raises(UserError, match="above 0"):
        replace(part, temperature=0.0)


@every_estimator
@given(rows=st.integers(1, 5), near=st.integers(1, 3), far=st.integers(1, 6), seed=st.integers(0, 30))
def test_dropped_pairs_do_not_count(part, rows, near, far, seed):
    """Neither their cosines nor their presence changes a loss, and they get no gradient."""
    a, b = cosines(rows, near, seed).requires_grad_(), cosines(rows, far, seed + 1).requires_grad_()
    keep_a, keep_b = mask(rows, near, seed + 2), mask(rows, far, seed + 3)
    actual = losses(part, synthetic.table(a, keep_a), synthetic.table(b, keep_b))
    assert torch.isfinite(actual).all()
    to_a, to_b = torch.autograd.grad(actual.sum(), (a, b), allow_unused=True)
    to_b = torch.zeros_like(b) if to_b is None else to_b
    assert torch.isfinite(to_a).all() and torch.isfinite(to_b).all()
    assert (to_a[~keep_a] == 0).all() and (to_b[~keep_b] == 0).all()
    other = losses(
        part,
        synthetic.table(torch.where(keep_a, a, 0.99), keep_a),
        synthetic.table(torch.where(keep_b, b, -0.99), keep_b),
    )
    assert torch.equal(actual, other)
    for row in range(rows):
        alone = losses(
            part, synthetic.table(a[row : row + 1, keep_a[row]]), synthetic.table(b[row : row + 1, keep_b[row]])
        )
        assert_close(alone[0], actual[row], rtol=1e-13, atol=1e-12)


@every_estimator
def test_a_query_without_positives_gives_nothing(part):
    a, b = cosines(2, 2, 0).requires_grad_(), cosines(2, 4, 1).requires_grad_()
    keep = torch.tensor([[False, False], [True, False]])
    actual = losses(part, synthetic.table(a, keep), synthetic.table(b))
    assert actual[0] == 0 and actual[1] != 0
    to_a, to_b = torch.autograd.grad(actual.sum(), (a, b))
    assert (to_a[0] == 0).all() and (to_b[0] == 0).all() and (to_b[1] != 0).all()


@every_estimator
def test_gradcheck(part):
    keep_a, keep_b = torch.tensor([[True, False], [True, True], [False, False]]), mask(3, 4, 3)

    def loss(a: Tensor, b: Tensor) -> Tensor:
        return losses(part, synthetic.table(a, keep_a), synthetic.table(b, keep_b))

    inputs = (cosines(3, 2, 0).requires_grad_(), cosines(3, 4, 1).requires_grad_())
    assert torch.autograd.gradcheck(loss, inputs)


@pytest.mark.parametrize("margin", [0.0, 0.4, -0.5])
@pytest.mark.parametrize("temperature", [0.02, 0.1, 1.0])
def test_info_nce_equals_its_loop(margin: float, temperature: float):
    a, b = cosines(5, 3, 0).requires_grad_(), cosines(5, 7, 1).requires_grad_()
    keep_a, keep_b = mask(5, 3, 2), mask(5, 7, 3)
    actual = losses(InfoNCE(temperature, margin), synthetic.table(a, keep_a), synthetic.table(b, keep_b))
    near = [[a[i, j] for j in range(3) if keep_a[i, j]] for i in range(5)]
    far = [[b[i, j] for j in range(7) if keep_b[i, j]] for i in range(5)]
    expected = torch.stack(reference.info_nce(near, far, temperature, margin))
    assert_close(actual, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(
        torch.autograd.grad(actual.sum(), (a, b)), torch.autograd.grad(expected.sum(), (a, b)), strict=True
    ):
        assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("temperature", [0.07, 0.1, 0.5])
def test_nce_equals_its_loop_and_freezes_the_normalizer(temperature: float):
    state = NCE(temperature).build(40)
    for batch in range(3):
        a, b = cosines(4, 1, batch).requires_grad_(), cosines(4, 6, batch + 9).requires_grad_()
        near, far = [a[i, 0] for i in range(4)], [[b[i, j] for j in range(6)] for i in range(4)]
        if batch == 0:
            z = reference.nce_normalizer(near, far, temperature, 40)
        actual = state(synthetic.table(a), synthetic.table(b), 0)
        assert_close(float(state.log_normalizer), math.log(z), rtol=1e-12, atol=0)
        expected = torch.stack(reference.nce(near, far, temperature, 40, z))
        assert_close(actual, expected, rtol=1e-11, atol=1e-10)
        for ours, theirs in zip(
            torch.autograd.grad(actual.sum(), (a, b)), torch.autograd.grad(expected.sum(), (a, b)), strict=True
        ):
            assert_close(ours, theirs, rtol=1e-10, atol=1e-10)


def test_the_normalizer_is_saved_and_not_set_in_evaluation():
    state = NCE(0.1).build(40)
    near, far = synthetic.table(cosines(4, 1, 0)), synthetic.table(cosines(4, 6, 1))
    state.eval()
    state(near, far, 0)
    assert torch.isnan(state.log_normalizer)
    state.train()
    state(near, far, 0)
    other = NCE(0.1).build(40)
    other.load_state_dict(state.state_dict())
    different = synthetic.table(cosines(4, 6, 2))
    assert torch.equal(other(near, different, 0), state(near, different, 0))
    assert torch.equal(other.log_normalizer, state.log_normalizer)


def test_the_normalizer_leaves_dropped_pairs_out():
    near, far, keep = cosines(4, 1, 0), cosines(4, 6, 1), mask(4, 6, 2)
    one, two = NCE(0.1).build(40), NCE(0.1).build(40)
    one(synthetic.table(near), synthetic.table(far, keep), 0)
    two(synthetic.table(near), synthetic.table(torch.where(keep, far, 0.9), keep), 0)
    assert torch.equal(one.log_normalizer, two.log_normalizer)
    kept_scores = [float(s) for s in near.flatten()] + [float(s) for s in far[keep]]
    expected = math.log(40 * sum(math.exp(s / 0.1) for s in kept_scores) / len(kept_scores))
    assert_close(float(one.log_normalizer), expected, rtol=1e-12, atol=0)


def test_table_estimators_are_distinguished_from_others():
    assert isinstance(NCE().build(3), TableEstimator)


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


# Identities; the numbers are those of the project's list.


@pytest.mark.parametrize("count", [1, 127, 65_536])
def test_16_constant_logits_give_log_of_the_choices(count: int):
    positive = synthetic.table(torch.full((2, 1), 0.3, dtype=torch.float64))
    partition = torch.full((2,), 0.3 / 0.07 + math.log(count), dtype=torch.float64)
    actual = InfoNCE(0.07)(positive, synthetic.negatives(partition), 0)
    assert_close(actual, torch.full_like(actual, math.log(count + 1)), rtol=0, atol=1e-12)
    if count == 65_536:
        assert abs(float(actual[0]) - 11.0904) < 5e-5


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


@pytest.mark.parametrize("count", [1, 100, 4095])
def test_9_info_nce_bounds_information_by_log_of_the_choices(count: int):
    """The estimate is log(k+1) − loss: 0 for a constant critic, never above log(k+1)."""
    flat = InfoNCE(1.0)(
        synthetic.table(torch.zeros(1, 1, dtype=torch.float64)),
        synthetic.negatives(torch.tensor([math.log(count)], dtype=torch.float64), count),
        0,
    )
    assert abs(math.log(count + 1) - float(flat)) < 1e-12
    best = InfoNCE(1e-3)(
        synthetic.table(torch.ones(1, 1, dtype=torch.float64)), synthetic.negatives(torch.tensor([-1e3]).double()), 0
    )
    assert 0 <= float(best) and math.log(count + 1) - float(best) <= math.log(count + 1)


def test_float32_keeps_small_and_large_losses():
    positive = synthetic.table(torch.tensor([[1.0], [-1.0]]))
    actual = InfoNCE(0.01)(positive, synthetic.negatives(torch.tensor([60.0, 100.0])), 0)
    assert 0 < float(actual[0]) < 1e-16 and float(actual[1]) == 200.0
