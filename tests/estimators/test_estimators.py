"""The contract of estimators, their loop references, and the identities of the papers."""

import inspect
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
from vantage.estimators.estimator import check_temperature
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
    for temperature in (0.0, math.inf, math.nan):  # with infinity all keys count alike, and nothing is learned
        with pytest.raises(UserError, match=f"temperature {temperature} must be a finite number above 0"):
            replace(part, temperature=temperature)


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


def test_a_temperature_to_be_learned_is_refused() -> None:
    """Its gradient would lack the part of the negatives, and had the wrong sign."""
    check = inspect.unwrap(check_temperature)  # the tests' own checks would refuse a tensor first
    temperature = torch.tensor(0.2)
    check(temperature)
    with pytest.raises(UserError, match="requires a gradient, but its gradient would lack the part of the negatives"):
        check(temperature.requires_grad_())


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
        actual = state(synthetic.table(a), synthetic.table(b), batch)
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
    assert torch.equal(other(near, different, 1), state(near, different, 1))
    assert torch.equal(other.log_normalizer, state.log_normalizer)


def test_the_normalizer_is_that_of_the_joint_batch_in_any_number_of_parts():
    near, far, keep = cosines(8, 1, 0), cosines(8, 6, 1), mask(8, 6, 2)
    whole = NCE(0.1).build(40)
    whole(synthetic.table(near), synthetic.table(far, keep), 3)
    for parts in (2, 4, 8):
        state = NCE(0.1).build(40)
        for near_part, far_part, kept in zip(near.chunk(parts), far.chunk(parts), keep.chunk(parts), strict=True):
            state(synthetic.table(near_part), synthetic.table(far_part, kept), 3)
        assert_close(state.log_normalizer, whole.log_normalizer, rtol=1e-14, atol=0)
        state(synthetic.table(near), synthetic.table(0.5 * far), 4)
        assert_close(state.log_normalizer, whole.log_normalizer, rtol=1e-14, atol=0)
        resumed = NCE(0.1).build(40)
        resumed.load_state_dict(state.state_dict())
        resumed(synthetic.table(near), synthetic.table(0.5 * far), 3)
        assert torch.equal(resumed.log_normalizer, state.log_normalizer), "a later process adds nothing"


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


# Identities; the numbers are those of the project's list.


@pytest.mark.parametrize("count", [1, 127, 65_536])
def test_16_constant_logits_give_log_of_the_choices(count: int):
    positive = synthetic.table(torch.full((2, 1), 0.3, dtype=torch.float64))
    partition = torch.full((2,), 0.3 / 0.07 + math.log(count), dtype=torch.float64)
    actual = InfoNCE(0.07)(positive, synthetic.negatives(partition), 0)
    assert_close(actual, torch.full_like(actual, math.log(count + 1)), rtol=0, atol=1e-12)
    if count == 65_536:
        assert abs(float(actual[0]) - 11.0904) < 5e-5


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
