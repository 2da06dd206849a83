"""What the papers claim of their objectives, looked at: on toys whose truth is known, and on trained runs."""

from vantage.analyse.analysis import Analysed, Analysis, Findings, Toy, analyse, experiment
from vantage.analyse.band import Band
from vantage.analyse.false_negatives import FalseNegatives
from vantage.analyse.gaussian import Gaussian, OptimalToy
from vantage.analyse.held_out import BranchInformation, HeldOutInformation, nce_of_pairs
from vantage.analyse.information import cnce, i_nce, nce, percentiles
from vantage.analyse.known import Curve, Known
from vantage.analyse.labels import Labels
from vantage.analyse.learned import Learned, learned, random_learned
from vantage.analyse.similarity import Similarity
from vantage.analyse.spread import Spread, SpreadRow, SpreadToy
from vantage.analyse.toy import TrainedToy

__all__ = [
    "Analysed",
    "Analysis",
    "Band",
    "BranchInformation",
    "Curve",
    "FalseNegatives",
    "Findings",
    "Gaussian",
    "HeldOutInformation",
    "Known",
    "Labels",
    "Learned",
    "OptimalToy",
    "Similarity",
    "Spread",
    "SpreadRow",
    "SpreadToy",
    "Toy",
    "TrainedToy",
    "analyse",
    "cnce",
    "experiment",
    "i_nce",
    "learned",
    "nce",
    "nce_of_pairs",
    "percentiles",
    "random_learned",
]
