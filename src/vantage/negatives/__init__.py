"""Which keys of the pool are negatives: rules applied left to right, each of which drops some scores.

To add a sampler, write one frozen dataclass in a file of its own, one line below, and one instance in the contract list
of `tests/negatives/test_negatives.py`.
"""

from vantage.composition.public import make_public
from vantage.negatives.band import AbsoluteRing as AbsoluteRing
from vantage.negatives.band import Amount as Amount
from vantage.negatives.band import Ball as Ball
from vantage.negatives.band import BandRule as BandRule
from vantage.negatives.band import Count as Count
from vantage.negatives.band import Easiest as Easiest
from vantage.negatives.band import Hardest as Hardest
from vantage.negatives.band import Ring as Ring
from vantage.negatives.band import Share as Share
from vantage.negatives.pairs import OtherClusters as OtherClusters
from vantage.negatives.pairs import OtherImages as OtherImages
from vantage.negatives.pairs import OwnCluster as OwnCluster
from vantage.negatives.rule import BlindRule as BlindRule
from vantage.negatives.rule import PairRule as PairRule
from vantage.negatives.rule import PoolRule as PoolRule
from vantage.negatives.rule import Rule as Rule
from vantage.negatives.rule import ShardRule as ShardRule
from vantage.negatives.sample import Distinct as Distinct
from vantage.negatives.sample import Draw as Draw
from vantage.negatives.sample import DrawResult as DrawResult
from vantage.negatives.sample import Sample as Sample
from vantage.negatives.subset import Subset as Subset

__all__ = make_public(globals())  # pyright: ignore
