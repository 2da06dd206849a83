"""What the papers claim of their objectives, looked at: on toys whose truth is known, and on trained runs."""

from vantage.analyse.analysis import Analysed, Analysis, Findings, analyse
from vantage.analyse.learned import Learned, learned, random_learned
from vantage.analyse.similarity import Similarity

__all__ = ["Analysed", "Analysis", "Findings", "Learned", "Similarity", "analyse", "learned", "random_learned"]
