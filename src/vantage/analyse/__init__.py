"""What the papers claim of their objectives, looked at: on toys whose truth is known, and on trained runs."""

from vantage.analyse.analysis import Analysed, Analysis, Findings, analyse
from vantage.analyse.band import Band
from vantage.analyse.false_negatives import FalseNegatives
from vantage.analyse.labels import Labels
from vantage.analyse.learned import Learned, learned, random_learned
from vantage.analyse.similarity import Similarity

__all__ = [
    "Analysed",
    "Analysis",
    "Band",
    "FalseNegatives",
    "Findings",
    "Labels",
    "Learned",
    "Similarity",
    "analyse",
    "learned",
    "random_learned",
]
