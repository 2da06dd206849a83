"""What every negative rule offers."""

from abc import ABC, abstractmethod
from typing import Protocol, runtime_checkable

from vantage.records import Keys, Scores

__all__ = ["PairRule", "Rule"]


@runtime_checkable
class Rule(Protocol):
    """Maps scores to fewer scores. Rows stay apart, nothing dropped comes back, no gradient passes through the
    choice."""

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs that stay negatives at this step."""
        ...


class PairRule(ABC):
    """A rule that judges each pair by what is known of its two images, whatever the cosines and the other keys.

    Such rules give the same result on chunks of the pool, so `log_partition` can stream them.
    """

    @abstractmethod
    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs that stay negatives at this step."""
