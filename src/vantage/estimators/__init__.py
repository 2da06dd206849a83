"""What compares positives with negatives."""

from vantage.estimators.decoupled import Decoupled
from vantage.estimators.estimator import Estimator, TableChoice, TableEstimator
from vantage.estimators.info_nce import InfoNCE
from vantage.estimators.jcl import JCL
from vantage.estimators.local_aggregation import LocalAggregation
from vantage.estimators.nce import NCE, NCEState

__all__ = [
    "JCL",
    "Decoupled",
    "Estimator",
    "InfoNCE",
    "LocalAggregation",
    "NCE",
    "NCEState",
    "TableChoice",
    "TableEstimator",
]
