"""Rules of a user's own, which no file of the package names: what they declare takes them the fast way.

b: queries   k: keys drawn   n: keys scored   s: keys of the narrowed pool
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import synthetic
import torch
from jaxtyping import Bool, Int, Int64
from torch import Tensor
from torch.testing import assert_close

from vantage.branch import Branch
from vantage.estimators import InfoNCE
from vantage.memory import Bank
from vantage.negatives import BandRule, BlindRule, Draw, OtherImages, PairRule, PoolRule, Rule
from vantage.negatives.sample import DrawResult
from vantage.partition import negatives, negatives_of, sum_negatives, sum_table
from vantage.positives import Remembered
from vantage.records import Keys, Scores


@dataclass(frozen=True)
class EvenImages(PairRule):
    """Drop keys of images with an odd number."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs with an even image."""
        return scores.only(scores.of(pool.image) % 2 == 0)


@dataclass(frozen=True)
class Middle(BandRule):
    """Keep the middle third of the ranks."""

    def ranks(self, counts: Int[Tensor, "b"], step: int) -> tuple[Int[Tensor, "b"], Int[Tensor, "b"]]:
        """A third and two thirds."""
        return counts // 3, counts - counts // 3


@dataclass(frozen=True)
class EveryOther(PoolRule):
    """Keep every other key of the pool."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """Those columns."""
        column = self.subset_of(query, scores.cosine.shape[1])
        return Scores(scores.cosine[:, column], scores.key[:, column], scores.keep[:, column])

    def subset_of(self, query: Keys, keys: int) -> Int[Tensor, "s"]:
        """The even columns."""
        return torch.arange(0, keys, 2)


@dataclass(frozen=True)
class NextOnes(BlindRule):
    """Draw the keys that follow the query's own row."""

    count: int = 3
    """Keys for each query."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """Those columns."""
        return scores.narrow(self.blindly(query, scores.cosine.shape[1]))

    def most(self, keys: int) -> int:
        """`count`."""
        return self.count

    def blindly(self, query: Keys, keys: int) -> Int[Tensor, "b k"]:
        """The next columns, around the end."""
        return (query.image[:, None] + torch.arange(1, self.count + 1)) % keys


@dataclass(frozen=True)
class FirstOnes(Draw):
    """Take the first columns that are left."""

    def most(self, keys: int) -> int:
        """`count`, or all."""
        return min(self.count, keys)

    def of_row(self, column: Int64[np.ndarray, "p"], seed: int) -> Int64[np.ndarray, "k"]:
        """The first ones."""
        return column[: self.count]

    def on_device(self, keep: Bool[Tensor, "b n"], query: Keys) -> DrawResult:
        """Not asked for on a CPU."""
        raise AssertionError


CASES: tuple[tuple[tuple[Rule, ...], str], ...] = (
    ((EvenImages(),), "sum_streaming"),
    ((EvenImages(), Middle()), "sum_band"),
    ((EvenImages(), Middle(), FirstOnes(4)), "sum_band_draw"),
    ((EveryOther(), EvenImages()), "sum_streaming"),
    ((EveryOther(), OtherImages(), Middle()), "sum_band"),
    ((NextOnes(), OtherImages()), "sum_table"),
)


@pytest.mark.parametrize(("rules", "name"), CASES, ids=str)
def test_a_custom_rule_takes_the_fast_path_to_the_same_number(rules, name: str, monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []

    def record(function_name: str, original: Callable[..., object]) -> Callable[..., object]:
        return lambda *arguments: calls.append(function_name) or original(*arguments)

    for each in ("sum_streaming", "sum_band", "sum_band_draw", "sum_table"):
        monkeypatch.setattr(negatives, each, record(each, getattr(negatives, each)))
    query, keys = synthetic.keys(4, 5, 0), synthetic.keys(200, 5, 1)
    query = replace(query, vector=query.vector.requires_grad_())
    actual, expected = sum_negatives(query, keys, rules, 0.1, 0), sum_table(query, keys, rules, 0.1, 0)
    assert calls[0] == name
    assert_close(actual.log_sum, expected.log_sum, rtol=0, atol=1e-12)
    assert torch.equal(actual.count, expected.count)
    ours, theirs = (torch.autograd.grad(one.log_sum.sum(), query.vector)[0] for one in (actual, expected))
    assert_close(ours, theirs, rtol=0, atol=1e-11)


def test_a_blind_rule_scores_only_the_drawn_keys(monkeypatch: pytest.MonkeyPatch):
    query, keys = synthetic.keys(4, 5, 0), synthetic.keys(200, 5, 1)
    whole = sum_table(query, keys, (NextOnes(),), 0.1, 0).log_sum

    def assert_refused(query: Keys, pool: Keys) -> Scores:
        raise AssertionError("the whole pool is scored")

    monkeypatch.setitem(negatives_of.__globals__, "score", assert_refused)
    assert torch.equal(sum_negatives(query, keys, (NextOnes(),), 0.1, 0).log_sum, whole)
    cosine = torch.stack([(query.vector[row] * keys.vector[row + 1 : row + 4]).sum(1) for row in range(4)])
    assert_close(whole, torch.logsumexp(cosine / 0.1, 1), rtol=0, atol=1e-12)


def test_a_pool_rule_narrows_the_pool_for_later_rules():
    widths: list[int] = []

    @dataclass(frozen=True)
    class Watched(PairRule):
        """Notes how many keys it is shown."""

        def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
            """The same pairs."""
            widths.append(len(pool))
            return scores

    sum_negatives(synthetic.keys(4, 5, 0), synthetic.keys(200, 5, 1), (EveryOther(), Watched()), 0.1, 0)
    assert widths == [100]


def test_custom_rules_work_in_a_branch():
    branch = Branch(Bank(), Remembered(), (EveryOther(), NextOnes(2)), InfoNCE(0.1), keys=(), pool=(0,))
    query, pool = synthetic.keys(4, 5, 0), synthetic.keys(200, 5, 1)
    assert torch.isfinite(branch.contrast(query, (), pool, 0).loss)
