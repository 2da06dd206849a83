"""One contrast: its checks, and the whole path of references through it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import synthetic
import torch
from hypothesis import given
from hypothesis import strategies as st
from references import losses as reference
from torch.testing import assert_close

from vantage.branch import Branch
from vantage.errors import UserError
from vantage.estimators import NCE, Estimator, EstimatorChoice, InfoNCE
from vantage.memory import Bank, InBatch, Queue
from vantage.memory.remember import EachKey
from vantage.negatives import OtherClusters, OtherImages, Sample
from vantage.positives import OtherViews, Remembered
from vantage.recipes import jcl, simclr
from vantage.records import Keys, Scores
from vantage.training.run import Run

MOCO = Branch(Queue(9), OtherViews(), (), InfoNCE(0.2))
IR = Branch(Bank(), Remembered(), (Sample(6),), InfoNCE(0.1), keys=(), pool=(0,))


def contrast(branch: Branch, query: Keys, keys: tuple[Keys, ...], pool: Keys, step: int = 0):
    choice = branch.estimator
    state = choice.build(len(pool)) if isinstance(choice, EstimatorChoice) else None
    return branch.contrast(query, keys, pool, step, state)


def test_moco():
    query, key, pool = (synthetic.keys(n, 5, seed) for seed, n in enumerate((4, 4, 9)))
    query.vector.requires_grad_()
    actual = contrast(MOCO, query, (key,), pool).loss
    expected = reference.moco(query.vector, key.vector, pool.vector, 0.2)
    assert_close(actual, expected, rtol=0, atol=1e-10)
    ours, theirs = (torch.autograd.grad(loss, query.vector)[0] for loss in (actual, expected))
    assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_nt_xent_as_two_branches_with_gradient_to_every_key():
    first, second = synthetic.vectors(4, 5, 0).requires_grad_(), synthetic.vectors(4, 5, 1).requires_grad_()
    image = torch.arange(4)
    one, two, pool = (
        Keys(first, image),
        Keys(second, image),
        Keys(torch.cat([first, second]), torch.cat([image, image])),
    )
    branch = Branch(InBatch(), OtherViews(), (OtherImages(),), InfoNCE(0.5))
    loss = (contrast(branch, one, (two,), pool).loss + contrast(branch, two, (one,), pool).loss) / 2
    expected = reference.nt_xent(first, second, 0.5)
    assert_close(loss, expected, rtol=0, atol=1e-10)
    for ours, theirs in zip(
        torch.autograd.grad(loss, (first, second)), torch.autograd.grad(expected, (first, second)), strict=True
    ):
        assert_close(ours, theirs, rtol=0, atol=1e-10)


@pytest.mark.parametrize("same", [2, 9])
def test_16_equal_embeddings_give_log_of_2n_minus_1(same: int):
    vector, image = torch.ones(same, 3, dtype=torch.float64) / 3**0.5, torch.arange(same)
    one, pool = Keys(vector, image), Keys(vector.repeat(2, 1), image.repeat(2))
    loss = contrast(Branch(InBatch(), OtherViews(), (OtherImages(),), InfoNCE(0.1)), one, (one,), pool).loss
    assert_close(loss, torch.log(torch.tensor(2.0 * same - 1)).double(), rtol=0, atol=1e-6)


@given(images=st.integers(2, 6), seed=st.integers(0, 50))
def test_16_nt_xent_does_not_care_which_view_is_first(images: int, seed: int):
    first, second = (synthetic.keys(images, 4, 2 * seed + n) for n in range(2))
    branches = simclr(32).branches

    def halves(*views: Keys) -> list[torch.Tensor]:
        pool = EachKey()(views)
        pairs = [(views[branch.query], tuple(views[key] for key in branch.keys)) for branch in branches]
        return [contrast(branch, *pair, pool).loss for branch, pair in zip(branches, pairs, strict=True)]

    ours, theirs = halves(first, second), halves(second, first)
    assert_close(sum(ours), sum(theirs), rtol=0, atol=1e-12)
    assert abs(float(ours[0] - theirs[0])) > 1e-9, "a half by itself does care"
    assert [branch.weight(0) for branch in branches] == [0.5, 0.5]


@pytest.mark.parametrize("objective", ["sampled", "full", "nce"])
def test_instance_discrimination(objective: str):
    query, pool = synthetic.keys(4, 5, 0), synthetic.keys(12, 5, 1)
    query.vector.requires_grad_()
    columns = Sample(6).blindly(query, 12).tolist()
    if objective == "full":
        branch = replace(IR, negatives=(OtherImages(),))
        columns = [[j for j in range(12) if j != i] for i in range(4)]
    else:
        branch = IR if objective == "sampled" else replace(IR, estimator=NCE(0.1))
    actual = contrast(branch, query, (), pool).loss
    if objective == "nce":
        near = [reference.dot(query.vector[i], pool.vector[i]) for i in range(4)]
        far = [[reference.dot(query.vector[i], pool.vector[j]) for j in columns[i]] for i in range(4)]
        z = reference.nce_normalizer(near, far, 0.1, 12)
        expected = torch.stack(reference.nce(near, far, 0.1, 12, z)).mean()
    else:
        expected = reference.instance_discrimination(query.vector, pool.vector, [0, 1, 2, 3], columns, 0.1)
    assert_close(actual, expected, rtol=0, atol=1e-10)
    ours, theirs = (torch.autograd.grad(loss, query.vector)[0] for loss in (actual, expected))
    assert_close(ours, theirs, rtol=0, atol=1e-10)


def test_the_mean_is_over_queries_with_a_positive():
    class SomePositives:
        """Only the first two queries have a positive."""

        def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Keys, step: int) -> Scores:
            scores = OtherViews()(query, keys, pool, step)
            return scores.only(torch.tensor([[True], [True], [False]]))

    query, key, pool = (synthetic.keys(n, 4, seed) for seed, n in enumerate((3, 3, 9)))
    loss = contrast(replace(MOCO, positives=SomePositives()), query, (key,), pool).loss
    first = slice(0, 2)
    assert_close(loss, contrast(MOCO, query.rows(first), (key.rows(first),), pool).loss, rtol=0, atol=1e-12)


def test_no_query_with_a_positive_gives_zero_and_no_nan():
    class NoPositives:
        """No query has a positive."""

        def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Keys, step: int) -> Scores:
            scores = OtherViews()(query, keys, pool, step)
            return scores.only(torch.zeros_like(scores.keep))

    for estimator in (InfoNCE(0.1), NCE(0.1)):
        query, key, pool = (synthetic.keys(n, 4, seed) for seed, n in enumerate((3, 3, 9)))
        query.vector.requires_grad_()
        branch = replace(MOCO, positives=NoPositives(), estimator=estimator)
        loss = contrast(branch, query, (key,), pool).loss
        loss.backward()
        assert loss == 0 and (query.vector.grad == 0).all()


def test_rotating_everything_changes_nothing():
    turn = torch.linalg.qr(synthetic.vectors(5, 5, 9)).Q
    parts = [synthetic.keys(n, 5, seed) for seed, n in enumerate((4, 4, 9))]
    rotated = [Keys(part.vector @ turn, part.image, seed=part.seed) for part in parts]
    plain, other = (contrast(MOCO, query, (key,), pool).loss for query, key, pool in (parts, rotated))
    assert_close(plain, other, rtol=0, atol=1e-12)
    reordered_pool = parts[2].rows(torch.randperm(9))
    assert_close(contrast(MOCO, parts[0], (parts[1],), reordered_pool).loss, plain, rtol=0, atol=1e-12)


def test_7_a_draw_equals_the_loss_on_the_same_indices():
    query, pool = synthetic.keys(4, 5, 0), synthetic.keys(400, 5, 1)
    result = contrast(IR, query, (), pool, step=3)
    columns = Sample(6).blindly(query, 400)
    assert (IR.negatives[0], 6 * 32 <= 400) == (Sample(6), True)  # this pool is long enough for the short cut
    positive = result.positive.cosine
    both = torch.cat([positive, (query.vector @ pool.vector.T).gather(1, columns)], 1) / 0.1
    plain = torch.nn.functional.cross_entropy(both, torch.zeros(4, dtype=torch.int64))
    assert_close(result.loss, plain, rtol=0, atol=1e-12)


def test_views_are_counted_and_checked():
    assert MOCO.views == 2 and IR.views == 1
    assert Branch(InBatch(), OtherViews(), (), InfoNCE(), query=3, keys=(0,), pool=(1, 2)).views == 4
    with pytest.raises(UserError, match=r"Branch\.pool"):
        replace(MOCO, pool=())
    with pytest.raises(UserError, match=r"Branch\.pool"):
        replace(MOCO, keys=())
    with pytest.raises(UserError, match="numbered from 0"):
        replace(MOCO, keys=(-1,))


def test_the_pool_moves_with_the_keys_unless_it_is_named():
    """A sweep over `keys` of JCL must not keep remembering views that it no longer has."""
    assert jcl(32).branches[0].pool_views == (1, 2, 3, 4, 5)
    fewer = replace(jcl(32).branches[0], keys=(1, 2))
    assert fewer.pool_views == (1, 2) and fewer.views == 3
    assert replace(simclr(32).branches[0], keys=(2,)).pool_views == (0, 1)


def test_estimators_are_of_one_kind_or_the_other():
    assert isinstance(MOCO.estimator, Estimator) and not isinstance(MOCO.estimator, EstimatorChoice)


def test_queries_take_the_clusters_that_the_bank_has_of_their_images():
    """Seen through a rule: only the images of other clusters are negatives."""
    query, pool = synthetic.keys(3, 5, 0), synthetic.keys(6, 5, 1)
    query = replace(query, image=torch.tensor([4, 0, 5]))
    pool = replace(pool, cluster=torch.tensor([0, 1, 0, 1, 2, 2])[:, None])
    branch = replace(IR, negatives=(OtherClusters(),))
    loss = contrast(branch, query, (), pool).loss
    others = [[0, 1, 2, 3], [1, 3, 4, 5], [0, 1, 2, 3]]
    expected = reference.instance_discrimination(query.vector, pool.vector, [4, 0, 5], others, 0.1)
    assert_close(loss, expected, rtol=0, atol=1e-10)
    with pytest.raises(UserError, match="use a bank"):
        contrast(branch, query, (), replace(pool, image=torch.arange(6).flip(0)))


@pytest.mark.parametrize(
    ("part", "field", "value", "message"),
    [
        (Branch, "negatives", OtherImages(), r"a tuple of rules, found OtherImages; write one rule as \(rule,\)"),
        (Branch, "negatives", [OtherImages()], r"a tuple of rules, found list; write one rule as"),
        (Run, "branches", MOCO, r"a tuple, found Branch; write \(branch,\)"),
    ],
)
def test_a_missing_comma_is_refused_in_a_sentence(part: Any, field: str, value: object, message: str):
    with pytest.raises(UserError, match=f"{part.__name__}.{field}: expected {message}"):
        part.__post_init__(SimpleNamespace(**{field: value}))  # the tests' own type checker would refuse part(...)
