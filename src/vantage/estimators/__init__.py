"""What compares positives with negatives."""

from vantage.estimators.debiased import Debiased
from vantage.estimators.decoupled import Decoupled
from vantage.estimators.estimator import Estimator, EstimatorChoice, TableEstimator
from vantage.estimators.hcl import HCL
from vantage.estimators.info_nce import ArcNCE, InfoNCE
from vantage.estimators.jcl import JCL
from vantage.estimators.local_aggregation import LocalAggregation, MeanAggregation, PooledNCE
from vantage.estimators.nce import NCE, NCEState
from vantage.estimators.neighbors import MeanNeighbors, SoftNeighbors

__all__ = [
    "HCL",
    "JCL",
    "ArcNCE",
    "Debiased",
    "Decoupled",
    "Estimator",
    "EstimatorChoice",
    "InfoNCE",
    "LocalAggregation",
    "MeanAggregation",
    "MeanNeighbors",
    "NCE",
    "NCEState",
    "PooledNCE",
    "SoftNeighbors",
    "TableEstimator",
]
