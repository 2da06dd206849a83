"""Learned views: flows over colors, trained so that their channels share little beyond what labels need.

From InfoMin (Tian et al., arXiv 2005.10243, section 4.2 and appendix B.5), which released no code for this. `learn`
writes a folder; `vantage.learned_space` reads it as a color space for `InSpace`, wherever a color space is accepted.
"""

from vantage.composition.public import make_public
from vantage.studies.view_learning.game import Game as Game
from vantage.studies.view_learning.game import LabeledBatch as LabeledBatch
from vantage.studies.view_learning.game import NotFinite as NotFinite
from vantage.studies.view_learning.game import Players as Players
from vantage.studies.view_learning.learning import PRINTED as PRINTED
from vantage.studies.view_learning.learning import SWAPPED as SWAPPED
from vantage.studies.view_learning.learning import Alternately as Alternately
from vantage.studies.view_learning.learning import Jointly as Jointly
from vantage.studies.view_learning.learning import Rates as Rates
from vantage.studies.view_learning.learning import ViewLearning as ViewLearning
from vantage.studies.view_learning.loop import LearnedViews as LearnedViews
from vantage.studies.view_learning.loop import learn as learn
from vantage.studies.view_learning.presets import LEARNINGS as LEARNINGS
from vantage.studies.view_learning.presets import semi_supervised as semi_supervised
from vantage.studies.view_learning.presets import supervised as supervised
from vantage.studies.view_learning.presets import unsupervised as unsupervised
from vantage.studies.view_learning.record import epochs_done as epochs_done
from vantage.studies.view_learning.record import read_learning as read_learning
from vantage.studies.view_learning.scaling import ByStatistics as ByStatistics
from vantage.studies.view_learning.scaling import Unchanged as Unchanged
from vantage.studies.view_learning.terms import LabelInformation as LabelInformation
from vantage.studies.view_learning.terms import SharedInformation as SharedInformation
from vantage.studies.view_learning.terms import Term as Term
from vantage.studies.view_learning.terms import TermNetwork as TermNetwork
from vantage.studies.view_learning.terms import info_nce as info_nce

__all__ = ["LEARNINGS", *make_public(globals())]  # pyright: ignore
