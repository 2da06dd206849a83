"""Analyses of what the papers claim about their objectives: on toys whose truth is known, and on trained runs."""

from vantage.measures.information import cnce, i_nce, nce, percentiles
from vantage.studies.analyse.analysis import Analysis, Analyzed, Findings, Toy, analyse, experiment
from vantage.studies.analyse.band import Band
from vantage.studies.analyse.curves import EstimateCurve, EstimateCurves
from vantage.studies.analyse.false_negatives import FalseNegatives
from vantage.studies.analyse.gaussian import Gaussian, OptimalToy
from vantage.studies.analyse.held_out import BranchInformation, HeldOutInformation, nce_of_pairs
from vantage.studies.analyse.labels import Labels
from vantage.studies.analyse.networks import TrainedNetworks, random_networks, trained_networks
from vantage.studies.analyse.similarity import Similarity
from vantage.studies.analyse.spread import Spread, SpreadRow, SpreadToy
from vantage.studies.analyse.toy import TrainedToy

__all__ = [
    "Analyzed",
    "Analysis",
    "Band",
    "BranchInformation",
    "EstimateCurve",
    "FalseNegatives",
    "Findings",
    "Gaussian",
    "HeldOutInformation",
    "EstimateCurves",
    "Labels",
    "TrainedNetworks",
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
    "trained_networks",
    "nce",
    "nce_of_pairs",
    "percentiles",
    "random_networks",
]
