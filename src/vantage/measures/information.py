"""Bounds on mutual information from contrastive critics, in nats: NCE, CNCE, and I_NCE of a loss.

Wu et al., arXiv 2010.02037 ("CNCE" below), Eq. 1 and Theorems 3.1 and 3.2. With a critic f, a pair (u, v₁) and k
negatives v_j the estimate of one pair is

    f(u, v₁) − log( 1/(k+1) · Σ_{j = 1 … k+1} e^f(u, v_j) ),    the positive counted in the sum,

and its mean over pairs bounds I(U; V) from below if the negatives follow p(v) (NCE). CNCE draws them from the part of
p(v) whose critic exceeds a percentile, by the same rules as Ring's training. Its estimate is on average at most that of
NCE. (The theorem counts the positive among its k; here k counts only negatives, as in Eq. 1.)

b: pairs   k: negatives of each   m: keys in the pool   d: width
"""

import math
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.cosines import BUDGET
from vantage.errors import UserError
from vantage.negatives import AbsoluteRing, Rule
from vantage.partition import negatives_of
from vantage.partition.table import rows_of_table
from vantage.records import Keys
from vantage.schedules import Constant

__all__ = ["bound", "cnce", "i_nce", "nce", "percentiles"]

Loss = TypeVar("Loss", float, Tensor)


def bound(negatives: int) -> float:
    """log(K + 1) in nats, which no estimate with K negatives exceeds."""
    return math.log(negatives + 1)


def i_nce(loss: Loss, negatives: int) -> Loss:
    """I_NCE = log(K + 1) − L in nats, for an InfoNCE loss L with the positive and K negatives in its denominator.

    InfoMin (arXiv 2005.10243) writes log K, where K includes the positive. A loss without the positive in its
    denominator (`Decoupled`) bounds nothing. Raises `UserError` for a negative number of negatives.
    """
    if negatives < 0:
        raise UserError(
            f"I_NCE: negatives is {negatives}; give the number of negatives that each query was compared with"
        )
    return bound(negatives) - loss


def nce(positive: Float[Tensor, "b"], negative: Float[Tensor, "b k"]) -> Float[Tensor, "b"]:
    """Estimate for each pair from the critic's values for it and for its negatives (CNCE Eq. 1); at most log(k + 1)."""
    count = negative.new_full((len(negative),), negative.shape[1])
    return _estimate(positive, negative.logsumexp(1), count)


def cnce(
    positive: Float[Tensor, "b"],
    query: Keys,
    pool: Keys,
    rules: tuple[Rule, ...],
    temperature: float = 1.0,
    step: int = 0,
) -> Float[Tensor, "b"]:
    """Estimate for each pair whose negatives are chosen from a pool by rules, as in training.

    The critic is q·k/τ, and `positive` is its value for the pairs. `(*percentiles(w_l), Sample(k))` is CNCE with k
    draws, `(Sample(k),)` is NCE with the pool as p(v), and rules without a draw use every key that passes them. k is
    counted for each query; the estimate for a query without negatives is 0. Differentiable wherever the critic is;
    queries are processed in tiles, so that memory is bounded if no gradient is needed.
    """
    rows = rows_of_table(query, len(pool), BUDGET)
    estimates = []
    for start in range(0, len(query), rows):
        part = slice(start, start + rows)
        scores = negatives_of(query.rows(part), pool, rules, step)
        partition = scores.logits(temperature).logsumexp(1)
        estimates.append(_estimate(positive[part], partition, scores.keep.sum(1)))
    return torch.cat(estimates)


def percentiles(lower: float, upper: float = 100.0) -> tuple[Rule, ...]:
    """Rules that keep the negatives between two percentiles of similarity, w_ℓ and w_u of CNCE section 4.

    (0, 100) is the whole pool, and needs no rule. CNCE with any w_ℓ and w_u = 100 is at most NCE on average, since the
    critic is stochastically larger on its negatives. With w_u < 100 the hardest negatives are missing, and if w_ℓ is
    small the estimate can exceed both NCE and the information: Theorem 3.1 requires that e^f of every negative exceed
    its mean. Raises `UserError` unless 0 ≤ w_ℓ < w_u ≤ 100.
    """
    if not 0 <= lower < upper <= 100:
        raise UserError(f"percentiles are {lower:g} and {upper:g}; they must satisfy 0 ≤ lower < upper ≤ 100")
    if (lower, upper) == (0, 100):
        return ()
    return (AbsoluteRing(Constant(1 - lower / 100), Constant(1 - upper / 100)),)


def _estimate(
    positive: Float[Tensor, "b"], partition: Float[Tensor, "b"], negatives: Float[Tensor, "b"] | Int[Tensor, "b"]
) -> Float[Tensor, "b"]:
    """The estimate from the log-sum-exp of the negatives, computed from the loss."""
    loss = torch.logaddexp(positive, partition) - positive
    return torch.log1p(negatives.to(loss.dtype)) - loss
