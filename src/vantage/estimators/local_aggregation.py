"""Drawing a whole neighbourhood near.

b: queries   p: positives of each query
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from vantage.estimators.estimator import check_temperature
from vantage.records import Scores

__all__ = ["LocalAggregation"]

_LEAST = 1e-7  # added to the probability, in the release


@dataclass(frozen=True)
class LocalAggregation:
    """−log( Σ_{C∩B} exp(a/τ) / Σ_B exp(s/τ) + 1e−7 ): the probability of all positives together.

    Zhuang et al., arXiv 1903.12355, in the form of its release: the positives are the mates C∩B among the near rows B,
    and the negatives are the others of B, so lift and pull are both the soft maximum of the positives. `NearMates(k)`
    with the rules `(Hardest(k), OtherClusters())` give these sets. Wu et al. (arXiv 2010.02037, Eq. 5) write all of the
    cluster above the line, which is `ClusterMates`, and means in place of sums, which lowers the value by
    log(|B| / |C|) and changes no gradient.

    A query without a mate near it gives 0 and does not count; the release counts it as −log 1e−7 = 16.118, with no
    gradient.
    """

    temperature: float = 0.07
    """τ: what cosines are divided by."""

    def __post_init__(self) -> None:
        check_temperature(self.temperature)

    def __call__(self, positive: Scores, log_partition: Float[Tensor, "b"], step: int) -> Float[Tensor, "b"]:
        """One loss per query."""
        some = positive.keep.any(1)
        logits = positive.logits(self.temperature).to(log_partition.dtype)
        together = torch.logsumexp(torch.where(some[:, None], logits, 0.0), 1)
        probability = -softplus(log_partition - together, threshold=40.0)  # its logarithm
        least = torch.full_like(probability, math.log(_LEAST))
        return torch.where(some, -torch.logaddexp(probability, least), 0.0)
