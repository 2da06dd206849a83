"""Colorful Moving MNIST (InfoMin, arXiv 2005.10243, section 4.1): what two views share decides what is learned."""

from vantage.moving.clips import Clips, Pairs, Scene, composed, normalised
from vantage.moving.factors import Factors, SameClass, SameDigit, SameImage
from vantage.moving.motion import places, reflected
from vantage.moving.shared import COMBINATIONS, Shared
from vantage.moving.stock import Stock, backgrounds_of, digits_of

__all__ = [
    "COMBINATIONS",
    "Clips",
    "Factors",
    "Pairs",
    "SameClass",
    "SameDigit",
    "SameImage",
    "Scene",
    "Shared",
    "Stock",
    "backgrounds_of",
    "composed",
    "digits_of",
    "normalised",
    "places",
    "reflected",
]
