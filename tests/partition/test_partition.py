"""The negatives' log-sum-exp: every way gives the same number and the same gradient as the naive sum."""

from dataclasses import dataclass

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from torch import Tensor
from torch.testing import assert_close

from vantage.negatives import Distinct, OtherImages, Rule, Sample
from vantage.partition import negatives_of, sum_negatives, sum_streaming, sum_table
from vantage.records import Keys, Scores

SIZES = {
    "queries": st.integers(1, 7),
    "pool": st.integers(1, 40),
    "images": st.integers(1, 9),
    "seed": st.integers(0, 9),
}


@dataclass(frozen=True)
class Watched:
    """Drops nothing, and notes how large the tables are that it is shown."""

    shapes: list[tuple[int, int]]

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The same scores."""
        self.shapes.append((scores.cosine.shape[0], scores.cosine.shape[1]))
        return scores


@dataclass(frozen=True)
class Positive:
    """Drops keys with a negative cosine: a rule that looks, so nothing may stream it."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs at less than a right angle."""
        return scores.only(scores.cosine.detach() > 0)


def naive(query: Keys, pool: Keys, rules: tuple[Rule, ...], temperature: float) -> Tensor:
    """One differentiable table and torch's own logsumexp, with rows of nothing kept out of its gradient."""
    scores = negatives_of(query, pool, rules, 0)
    some = scores.keep.any(1)
    logits = torch.where(some[:, None], scores.logits(temperature), 0.0)
    return torch.where(some, torch.logsumexp(logits, 1), -torch.inf)


def pair(queries: int, pool: int, images: int, seed: int) -> tuple[Keys, Keys]:
    query, keys = synthetic.keys(queries, 4, seed, images), synthetic.keys(pool, 4, seed + 1, images)
    query.vector.requires_grad_()
    keys.vector.requires_grad_()
    return query, keys


def gradients(result: Tensor, *inputs: Tensor) -> tuple[Tensor, ...]:
    weight = torch.linspace(0.5, 2.0, len(result), dtype=result.dtype)
    finite = torch.where(torch.isfinite(result), result, 0.0)
    return torch.autograd.grad((finite * weight).sum(), inputs, retain_graph=True)


def agree(actual: Tensor, expected: Tensor, *inputs: Tensor) -> None:
    assert_close(actual, expected, rtol=0, atol=1e-12)
    for ours, theirs in zip(gradients(actual, *inputs), gradients(expected, *inputs), strict=True):
        assert_close(ours, theirs, rtol=0, atol=1e-11)


@given(**SIZES, chunk=st.integers(1, 50), budget=st.integers(1, 5000))
def test_streaming_and_table_equal_the_naive_sum(queries, pool, images, seed, chunk, budget):
    query, keys = pair(queries, pool, images, seed)
    for rules in ((), (OtherImages(),), (OtherImages(), OtherImages())):
        expected = naive(query, keys, rules, 0.1)
        agree(sum_streaming(query, keys, rules, 0.1, 0, chunk).log_sum, expected, query.vector, keys.vector)
        agree(sum_table(query, keys, rules, 0.1, 0, budget).log_sum, expected, query.vector, keys.vector)


@given(**SIZES, chunk=st.integers(1, 50), budget=st.integers(1, 5000))
def test_frozen_keys_give_the_same_gradient_in_one_pass(queries, pool, images, seed, chunk, budget):
    query, keys = pair(queries, pool, images, seed)
    frozen = Keys(keys.vector.detach(), keys.image)
    expected = naive(query, frozen, (OtherImages(),), 0.07)
    agree(sum_streaming(query, frozen, (OtherImages(),), 0.07, 0, chunk).log_sum, expected, query.vector)
    agree(sum_table(query, frozen, (OtherImages(),), 0.07, 0, budget).log_sum, expected, query.vector)


@given(**SIZES, budget=st.integers(1, 5000), frozen=st.booleans())
def test_rules_that_draw_or_look_equal_the_naive_sum(queries, pool, images, seed, budget, frozen):
    query, keys = pair(queries, pool, images, seed)
    inputs = (query.vector,) if frozen else (query.vector, keys.vector)
    keys = Keys(keys.vector.detach(), keys.image) if frozen else keys
    for rules in (
        (Sample(5),),
        (Distinct(3),),
        (OtherImages(), Sample(4)),
        (Sample(4), OtherImages()),
        (Positive(), OtherImages()),
        (OtherImages(), Distinct(9), Positive(), Sample(4, salt=1)),
    ):
        agree(sum_table(query, keys, rules, 0.1, 0, budget).log_sum, naive(query, keys, rules, 0.1), *inputs)


@given(queries=st.integers(1, 4), pool=st.integers(32, 200), seed=st.integers(0, 9), frozen=st.booleans())
def test_drawn_columns_equal_a_narrowed_table(queries: int, pool: int, seed: int, frozen: bool):
    """With few draws from many keys only the drawn keys are scored; the draws are those of the full table."""
    query, keys = pair(queries, pool, pool, seed)
    inputs = (query.vector,) if frozen else (query.vector, keys.vector)
    keys = Keys(keys.vector.detach(), keys.image) if frozen else keys
    rule = Sample(pool // 32)
    column = rule.blindly(query, pool)
    assert torch.equal(negatives_of(query, keys, (rule,), 0).key, column)
    cosine = (query.vector @ keys.vector.T).gather(1, column)
    expected = torch.logsumexp(cosine / 0.2, 1)
    agree(sum_negatives(query, keys, (rule,), 0.2, 0).log_sum, expected, *inputs)
    # A first rule that looks away keeps the draw from being seen by the short cut: the same columns come out.
    scores = negatives_of(query, keys, (Watched([]), rule), 0)
    assert torch.equal(scores.key, column)


@given(**SIZES)
def test_loop_reference(queries, pool, images, seed):
    query, keys = pair(queries, pool, images, seed)
    columns = [[j for j in range(pool) if keys.image[j] != query.image[i]] for i in range(queries)]
    expected = reference.partition(query.vector, keys.vector, columns, 0.1)
    log_sum = sum_negatives(query, keys, (OtherImages(),), 0.1, 0).log_sum
    assert_close(log_sum, expected, rtol=0, atol=1e-10)
    if any(columns):
        agree(log_sum, expected, query.vector, keys.vector)


@pytest.mark.parametrize("rules", [(), (OtherImages(),), (Sample(3), OtherImages()), (Positive(),)])
def test_gradcheck(rules: tuple[Rule, ...]):
    query, keys = pair(3, 8, 4, seed=3)

    def result(vector: Tensor, key_vector: Tensor) -> Tensor:
        log_sum = sum_negatives(
            Keys(vector, query.image, seed=query.seed), Keys(key_vector, keys.image), rules, 0.3, 0
        ).log_sum
        return log_sum[torch.isfinite(log_sum)]

    assert torch.autograd.gradcheck(
        result, (query.vector.detach().requires_grad_(), keys.vector.detach().requires_grad_())
    )
    assert torch.autograd.gradcheck(lambda vector: result(vector, keys.vector.detach()), (query.vector,))


@pytest.mark.parametrize("rules", [(OtherImages(),), (Positive(), OtherImages()), (OtherImages(), Sample(2))])
@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_without_negatives_give_minus_infinity_and_no_gradient(rules, frozen, dtype):
    query = Keys(synthetic.vectors(3, 4, 0, dtype).requires_grad_(), torch.tensor([7, 7, 1]), seed=torch.arange(3))
    keys = Keys(synthetic.vectors(5, 4, 1, dtype), torch.full((5,), 7))
    keys = Keys(keys.vector if frozen else keys.vector.requires_grad_(), keys.image)
    log_sum = sum_negatives(query, keys, rules, 0.1, 0).log_sum
    assert torch.isneginf(log_sum[:2]).all() and torch.isfinite(log_sum[2])
    losses = torch.nn.functional.softplus(log_sum)  # what an estimator does with it
    losses.sum().backward()
    assert query.vector.grad is not None
    assert (query.vector.grad[:2] == 0).all() and query.vector.grad[2].abs().sum() > 0
    if not frozen:
        assert keys.vector.grad is not None and torch.isfinite(keys.vector.grad).all()


@pytest.mark.parametrize("rules", [(), (Watched([]),)])
@pytest.mark.parametrize("temperature", [1e-3, 1e3])
def test_extreme_temperatures_neither_overflow_nor_vanish(rules, temperature: float):
    query = Keys(synthetic.vectors(4, 8, 0, torch.float32).requires_grad_(), torch.arange(4))
    keys = synthetic.keys(300, 8, 1, dtype=torch.float32)
    log_sum = sum_negatives(query, keys, rules, temperature, 0).log_sum
    exact = torch.logsumexp(query.vector.detach().double() @ keys.vector.double().T / temperature, 1)
    assert_close(log_sum.detach().double(), exact, rtol=1e-5, atol=1e-4)
    log_sum.sum().backward()
    assert query.vector.grad is not None and torch.isfinite(query.vector.grad).all()


@pytest.mark.parametrize("rules", [(), (OtherImages(),), (Watched([]),), (Sample(40),), (Sample(4),)])
@pytest.mark.parametrize("learn", [False, True])
def test_autocast_lowers_neither_pass(rules, learn: bool):
    def run() -> tuple[Tensor, ...]:
        query, keys = synthetic.keys(4, 16, 0, dtype=torch.float32), synthetic.keys(200, 16, 1, dtype=torch.float32)
        inputs = [query.vector.requires_grad_()] + ([keys.vector.requires_grad_()] if learn else [])
        result = sum_negatives(query, keys, rules, 0.1, 0).log_sum
        return (result, *torch.autograd.grad(result.sum(), inputs))

    plain = run()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        under_autocast = run()
    for ours, theirs in zip(under_autocast, plain, strict=True):
        assert ours.dtype == torch.float32
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_vectors_are_compared_in_float32(dtype: torch.dtype):
    query = Keys(synthetic.vectors(3, 8, 0, dtype).requires_grad_(), torch.arange(3))
    pool = Keys(synthetic.vectors(30, 8, 1, dtype), torch.arange(30))
    exact = torch.logsumexp(query.vector.detach().double() @ pool.vector.double().T / 0.07, 1)
    for rules in ((), (Watched([]),)):
        log_sum = sum_negatives(query, pool, rules, 0.07, 0).log_sum
        assert log_sum.dtype == torch.float32
        assert_close(log_sum.detach().double(), exact, rtol=0, atol=1e-5)
        log_sum.sum().backward()
        assert query.vector.grad is not None and query.vector.grad.dtype == dtype


@given(queries=st.integers(1, 30), pool=st.integers(1, 60), budget=st.integers(1, 20_000))
def test_no_tile_passes_the_budget(queries: int, pool: int, budget: int):
    shapes: list[tuple[int, int]] = []
    sum_table(synthetic.keys(queries, 2, 0), synthetic.keys(pool, 2, 1), (Watched(shapes),), 0.1, 0, budget)
    assert sum(rows for rows, _ in shapes) == queries
    for rows, columns in shapes:
        assert columns == pool
        assert rows == 1 or rows * columns * 24 <= budget


def test_streaming_never_holds_a_whole_table():
    @dataclass(frozen=True)
    class Noted(OtherImages):
        """Notes the size of the chunks."""

        def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
            """As `OtherImages`."""
            sizes.append(scores.cosine.shape[1])
            return super().__call__(scores, query, pool, step)

    sizes: list[int] = []
    sum_negatives(synthetic.keys(2, 2, 0), synthetic.keys(5000, 2, 1), (Noted(),), 0.1, 0)
    assert len(sizes) > 1 and sum(sizes) == 5000 and max(sizes) <= 2048


def test_order_of_rules_matters():
    query, keys = synthetic.keys(3, 4, 0, images=2), synthetic.keys(20, 4, 1, images=2)
    one = negatives_of(query, keys, (OtherImages(), Sample(6)), 0)
    two = negatives_of(query, keys, (Sample(6), OtherImages()), 0)
    assert one.keep.all(), "drawn from the other images"
    assert not two.keep.all(), "drawn first, then the own image dropped"


@pytest.mark.gpu
@pytest.mark.parametrize(
    "rules", [(), (OtherImages(),), (Sample(3), OtherImages()), (OtherImages(), Sample(5)), (Positive(),)]
)
@pytest.mark.parametrize("learn", [False, True])
def test_gpu_equals_cpu(rules, learn: bool):
    def run(device: str) -> list[Tensor]:
        query, keys = pair(9, 300, 20, seed=2)
        queries = Keys(
            query.vector.detach().to(device).requires_grad_(), query.image.to(device), None, query.seeds.to(device)
        )
        pool_keys = Keys(keys.vector.detach().to(device).requires_grad_(learn), keys.image.to(device))
        log_sum = sum_negatives(queries, pool_keys, rules, 0.1, 0).log_sum
        inputs = [queries.vector, pool_keys.vector] if learn else [queries.vector]
        return [part.cpu() for part in (log_sum, *torch.autograd.grad(log_sum.sum(), inputs))]

    for on_cpu, on_gpu in zip(run("cpu"), run("cuda"), strict=True):
        assert_close(on_cpu, on_gpu, rtol=0, atol=1e-10)
