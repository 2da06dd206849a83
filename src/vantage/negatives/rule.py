"""The contract of negative rules, and what a rule may declare so that the partition takes a faster path.

Every rule is a `Rule`. A rule that inherits from a class below, or from `BandRule` or `Draw`, declares what it does not
look at. The partition checks only for these classes, so a custom rule is as fast as a built-in one.

b: queries   k: keys drawn for each   s: keys of the narrowed pool
"""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from jaxtyping import Int
from torch import Tensor

from vantage.records import Keys, Scores

__all__ = ["BlindRule", "PairRule", "PoolRule", "Rule", "ShardRule"]


@runtime_checkable
class Rule(Protocol):
    """Drops some of the scores. A rule must not mix rows or restore dropped pairs, and no gradient passes through its
    choice."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs that stay negatives at this step."""
        ...


@runtime_checkable
class ShardRule(Protocol):
    """A rule that can select from the rows of one process of a sharded bank.

    A `PairRule`, a `BlindRule` that comes first and a `PoolRule` that comes first need no `on_shard`; any other rule
    does, whether it looks at each cosine by itself or compares those of a query.
    """

    def on_shard(self, scores: Scores, query: Keys, first: int, step: int) -> Scores:
        """The pairs that stay negatives, from the scores of the queries of all processes with the rows here.

        `first` is the number of the first row here in the whole bank. All processes make this call with the same
        queries, so it may exchange with `vantage.processes` what it must know of the other rows.
        """
        ...


class PairRule(ABC):
    """A rule that judges each pair by its two images alone, whatever the cosines and the other keys.

    Such rules give the same result on chunks of the pool, so `sum_negatives` can stream them.
    """

    @abstractmethod
    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs that stay negatives at this step."""


class BlindRule(ABC):
    """A rule that draws columns without looking at the cosines, if no pair was dropped before it.

    If it is the first rule, only the drawn keys are scored when that is cheaper.
    """

    @abstractmethod
    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The drawn pairs, as columns of their own."""

    @abstractmethod
    def most(self, keys: int) -> int:
        """The maximum number of keys drawn for a query from `keys` keys."""

    @abstractmethod
    def blindly(self, query: Keys, keys: int) -> Int[Tensor, "b k"]:
        """The columns that a call would draw from `keys` columns if none is dropped."""


class PoolRule(ABC):
    """A rule that keeps the same keys of the pool for all queries of a step, whatever the cosines.

    If it is the first rule, it narrows the pool before anything is scored.
    """

    @abstractmethod
    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs with these keys."""

    @abstractmethod
    def subset_of(self, query: Keys, keys: int) -> Int[Tensor, "s"]:
        """Which of `keys` keys stay, in order."""
