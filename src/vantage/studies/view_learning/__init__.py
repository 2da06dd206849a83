"""Learned views: flows over colors, trained so that their channels share little beyond what labels need.

InfoMin (Tian et al., arXiv 2005.10243, section 4.2 and appendix B.5), of which no code was released. `learn` writes a
folder; `vantage.learned_space` reads it back as a color space, for `InSpace` wherever a color space may stand.
"""

from vantage.studies.view_learning.course import LearnedViews, learn, read_learning
from vantage.studies.view_learning.game import Game, LabeledBatch, NotFinite, Players
from vantage.studies.view_learning.learning import PRINTED, SWAPPED, Alternately, Jointly, Rates, ViewLearning
from vantage.studies.view_learning.presets import LEARNINGS, semi_supervised, supervised, unsupervised
from vantage.studies.view_learning.scaling import ByStatistics, Unchanged
from vantage.studies.view_learning.terms import LabelInformation, SharedInformation, Term, TermNetwork, info_nce

__all__ = [
    "LEARNINGS",
    "PRINTED",
    "SWAPPED",
    "Alternately",
    "ByStatistics",
    "Game",
    "LabelInformation",
    "LabeledBatch",
    "LearnedViews",
    "NotFinite",
    "Players",
    "Rates",
    "SharedInformation",
    "Term",
    "TermNetwork",
    "Jointly",
    "Unchanged",
    "ViewLearning",
    "info_nce",
    "learn",
    "read_learning",
    "semi_supervised",
    "supervised",
    "unsupervised",
]
