"""What an estimator receives of a query's negatives: their sum and their number.

b: queries
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
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
    """The number of negatives, or a function that counts them on the first use of `count`, which most estimators never
    need."""

    @property
    def count(self) -> Int[Tensor, "b"]:
        """How many negatives the rules left for each query; a key that was drawn twice counts twice."""
        if torch.compiler.is_compiling():  # torch cannot trace the lock of Python 3.11's cached_property
            return self._count()
        return self._counted

    @cached_property
    def _counted(self) -> Int[Tensor, "b"]:
        return self._count()

    def _count(self) -> Int[Tensor, "b"]:
        return self.tally if isinstance(self.tally, Tensor) else self.tally()
