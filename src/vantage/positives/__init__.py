"""Which keys are positives of a query.

To add a kind, write one frozen dataclass in a file of its own, one line below, and one instance in the contract list of
`tests/positives/test_positives.py`.
"""

from vantage.composition.public import make_public
from vantage.positives.mates import ClusterMate as ClusterMate
from vantage.positives.mates import ClusterMates as ClusterMates
from vantage.positives.mates import NearMates as NearMates
from vantage.positives.mates import OtherMate as OtherMate
from vantage.positives.neighbors import Neighbors as Neighbors
from vantage.positives.positives import AlwaysFinds as AlwaysFinds
from vantage.positives.positives import Positives as Positives
from vantage.positives.views import FixedViews as FixedViews
from vantage.positives.views import OtherViews as OtherViews
from vantage.positives.views import Remembered as Remembered

__all__ = make_public(globals())  # pyright: ignore
