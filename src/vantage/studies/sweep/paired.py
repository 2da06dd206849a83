"""How the values of a sweep differ from its first one, seed by seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean

from vantage.measures.significance import FEWEST_TESTED, interval

__all__ = ["PairedDifference"]


@dataclass(frozen=True)
class PairedDifference:
    """The difference of two values, over the seeds that both were trained with."""

    mean: float
    """Mean of the differences."""

    low: float
    """Lower end of the 95 % interval of the mean (Student's t); the mean itself if all differences are equal."""

    high: float
    """Upper end of the interval."""

    @classmethod
    def of(cls, values: Mapping[int, float], first: Mapping[int, float]) -> "PairedDifference | None":
        """How `values` differ from `first`, each with one number by seed; None for fewer than three seeds in common."""
        gaps = [value - first[seed] for seed, value in values.items() if seed in first]
        return cls(fmean(gaps), *interval(gaps)) if len(gaps) >= FEWEST_TESTED else None

    def words(self, digits: int) -> str:
        """The difference as text, such as +1.2 [+0.3, +2.1]; without an interval if all differences are equal, which
        says nothing about their spread."""
        mean, low, high = (f"{round(number, digits) + 0.0:+.{digits}f}" for number in (self.mean, self.low, self.high))
        return mean if self.low == self.high else f"{mean} [{low}, {high}]"
