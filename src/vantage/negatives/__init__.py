"""Which keys of the pool are negatives: rules applied left to right, each mapping scores to fewer scores.

To add a sampler, write one frozen dataclass here and add one instance to the contract list in
`tests/negatives/test_negatives.py`.
"""

from vantage.negatives.band import AbsoluteRing, Amount, Ball, BandRule, Count, Easiest, Hardest, Ring, Share
from vantage.negatives.pairs import OtherClusters, OtherImages, OwnCluster
from vantage.negatives.rule import BlindRule, PairRule, PoolRule, Rule
from vantage.negatives.sample import Distinct, Draw, Sample
from vantage.negatives.subset import Subset

__all__ = [
    "AbsoluteRing",
    "Amount",
    "Ball",
    "BandRule",
    "BlindRule",
    "Count",
    "Distinct",
    "Draw",
    "Easiest",
    "Hardest",
    "OtherClusters",
    "OtherImages",
    "OwnCluster",
    "PairRule",
    "PoolRule",
    "Ring",
    "Rule",
    "Sample",
    "Share",
    "Subset",
]
