"""The contract of negative rules, and what a rule may declare so that the partition takes a faster path.

Every rule is a `Rule`. One that inherits from a class below, or from `BandRule` or `Draw`, declares what it does not
look at; the partition checks only for these kinds, so a custom rule is as fast as ours.

b: queries   k: keys drawn for each   s: keys of the narrowed pool
"""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from vantage.records import Keys, Scores

__all__ = ["BlindRule", "PairRule", "PoolRule", "Rule"]


@runtime_checkable
class Rule(Protocol):
    """Maps scores to fewer scores. Rows stay apart, nothing dropped comes back, no gradient passes through the
    choice."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs that stay negatives at this step."""
        ...


class PairRule(ABC):
    """A rule that judges each pair by what is known of its two images, whatever the cosines and the other keys.

    Such rules give the same result on chunks of the pool, so `sum_negatives` can stream them.
    """

    @abstractmethod
    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs that stay negatives at this step."""


class BlindRule(ABC):
    """A rule that, where nothing was dropped before it, draws columns without a look at the cosines.

    As the first rule, it lets only the drawn keys be scored, where that is cheaper.
    """

    @abstractmethod
    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The drawn pairs, as columns of their own."""

    @abstractmethod
    def most(self, keys: int) -> int:
        """How many of `keys` keys are drawn for a query, at most."""

    @abstractmethod
    def blindly(self, query: Keys, keys: int) -> Int[Tensor, "b k"]:
        """The columns that a call would draw from `keys` columns of which none is dropped."""


class PoolRule(ABC):
    """A rule that keeps the same keys of the pool for all queries of a step, whatever the cosines.

    As the first rule, it narrows the pool before anything is scored.
    """

    @abstractmethod
    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs with these keys."""

    @abstractmethod
    def subset_of(self, query: Keys, keys: int) -> Int[Tensor, "s"]:
        """Which of `keys` keys stay, in order."""
