"""Rules that judge each pair by what is known of its two images."""

from dataclasses import dataclass

from vantage.negatives.rule import PairRule
from vantage.records import Keys, Scores

__all__ = ["OtherImages"]


@dataclass(frozen=True)
class OtherImages(PairRule):
    """Drop keys of the query's own image.

    In a batch this masks the query itself and its positives (SimCLR: 2N − 2 negatives stay); in a bank, the own row;
    in a queue, keys of the same image from an earlier epoch, false negatives that are common when the queue is not much
    shorter than the data set.
    """

    def __call__(self, scores: Scores, query: Keys, pool: Keys, step: int) -> Scores:
        """The pairs of different images."""
        return scores.only(scores.of(pool.image) != query.image[:, None])
