"""Analyses of what the papers claim about their objectives: on toys with a known answer, and on trained runs."""

from vantage.composition.public import make_public
from vantage.measures.information import cnce as cnce
from vantage.measures.information import i_nce as i_nce
from vantage.measures.information import nce as nce
from vantage.measures.information import percentiles as percentiles
from vantage.studies.analyse.analysis import Analysis as Analysis
from vantage.studies.analyse.analysis import AnalysisResult as AnalysisResult
from vantage.studies.analyse.analysis import SavedAnalysis as SavedAnalysis
from vantage.studies.analyse.analysis import ToyAnalysis as ToyAnalysis
from vantage.studies.analyse.analysis import analyse as analyse
from vantage.studies.analyse.analysis import experiment as experiment
from vantage.studies.analyse.band import Band as Band
from vantage.studies.analyse.classes import Classes as Classes
from vantage.studies.analyse.curves import EstimateCurve as EstimateCurve
from vantage.studies.analyse.curves import EstimateCurves as EstimateCurves
from vantage.studies.analyse.false_negatives import FalseNegatives as FalseNegatives
from vantage.studies.analyse.gaussian import Gaussian as Gaussian
from vantage.studies.analyse.gaussian import OptimalToy as OptimalToy
from vantage.studies.analyse.held_out import HeldOutInformation as HeldOutInformation
from vantage.studies.analyse.held_out import nce_of_pairs as nce_of_pairs
from vantage.studies.analyse.information_table import BranchInformation as BranchInformation
from vantage.studies.analyse.information_table import InformationTable as InformationTable
from vantage.studies.analyse.labels import Labels as Labels
from vantage.studies.analyse.similarity import Similarity as Similarity
from vantage.studies.analyse.spread import Spread as Spread
from vantage.studies.analyse.spread import SpreadRow as SpreadRow
from vantage.studies.analyse.spread import SpreadToy as SpreadToy
from vantage.studies.analyse.toy import TrainedToy as TrainedToy

__all__ = ["cnce", "i_nce", "nce", "percentiles", *make_public(globals())]  # pyright: ignore
