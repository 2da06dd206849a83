"""What an estimator receives of a query's negatives: their sum and their number.

b: queries
"""

from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Negatives"]


@dataclass(frozen=True)
class Negatives:
    """The negatives of each query as two numbers: log Σ exp(b/τ), and how many there are.

    >>> import torch
    >>> Negatives(torch.zeros(2), torch.tensor([5, 7])).count.tolist()
    [5, 7]
    """

    log_sum: Float[Tensor, "b"]
    """log Σ exp(b/τ) over the negatives; −inf for a query with none."""

    tally: Int[Tensor, "b"] | Callable[[], Int[Tensor, "b"]]
    """The number of negatives, or a function that counts them when `count` is read, which most estimators never do."""

    @property
    def count(self) -> Int[Tensor, "b"]:
        """How many negatives the rules left for each query; a key that was drawn twice counts twice."""
        return self.tally if isinstance(self.tally, Tensor) else self.tally()
