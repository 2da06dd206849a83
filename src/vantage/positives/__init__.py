"""Which keys are positives of a query.

To add a kind, write one frozen dataclass here and add one instance to the contract list in `tests/positives/test_positives.py`.
"""

from vantage.positives.mates import ClusterMate, ClusterMates, NearMates, OtherMate
from vantage.positives.neighbors import Neighbors
from vantage.positives.positives import Positives
from vantage.positives.views import FixedViews, OtherViews, Remembered

__all__ = [
    "ClusterMate",
    "ClusterMates",
    "FixedViews",
    "NearMates",
    "Neighbors",
    "OtherMate",
    "OtherViews",
    "Positives",
    "Remembered",
]
