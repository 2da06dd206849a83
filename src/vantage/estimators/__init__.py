"""Estimators: they compare positives with negatives."""

from vantage.composition.public import make_public
from vantage.estimators.debiased import Debiased as Debiased
from vantage.estimators.decoupled import Decoupled as Decoupled
from vantage.estimators.estimator import Estimator as Estimator
from vantage.estimators.estimator import EstimatorChoice as EstimatorChoice
from vantage.estimators.estimator import TableEstimator as TableEstimator
from vantage.estimators.hcl import HCL as HCL
from vantage.estimators.info_nce import ArcNCE as ArcNCE
from vantage.estimators.info_nce import InfoNCE as InfoNCE
from vantage.estimators.jcl import JCL as JCL
from vantage.estimators.local_aggregation import LocalAggregation as LocalAggregation
from vantage.estimators.local_aggregation import MeanAggregation as MeanAggregation
from vantage.estimators.local_aggregation import PooledNCE as PooledNCE
from vantage.estimators.nce import NCE as NCE
from vantage.estimators.nce import NCEState as NCEState
from vantage.estimators.neighbors import MeanNeighbors as MeanNeighbors
from vantage.estimators.neighbors import SoftNeighbors as SoftNeighbors

__all__ = make_public(globals())  # pyright: ignore
