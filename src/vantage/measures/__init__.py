"""Pure functions of features, scores and labels."""

from vantage.composition.public import make_public
from vantage.measures.accuracy import Accuracy as Accuracy
from vantage.measures.accuracy import accuracy as accuracy
from vantage.measures.accuracy import best_classes as best_classes
from vantage.measures.average_precision import average_precision as average_precision
from vantage.measures.neighbors import nearest as nearest
from vantage.measures.neighbors import vote as vote
from vantage.measures.sphere import alignment as alignment
from vantage.measures.sphere import deviation as deviation
from vantage.measures.sphere import effective_rank as effective_rank
from vantage.measures.sphere import pair_potential as pair_potential
from vantage.measures.sphere import uniformity as uniformity

__all__ = make_public(globals())  # pyright: ignore
