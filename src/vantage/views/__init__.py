"""How views are made: batched operations on the device, with parameters per image, and the recipes of the papers."""

from vantage.views.augmentation import Augmentation, ViewMaker, Views
from vantage.views.colour import ColourJitter, Grayscale, Normalise
from vantage.views.evaluation import Evaluation
from vantage.views.filters import GaussianBlur
from vantage.views.geometry import Flip, RandomResizedCrop
from vantage.views.jigsaw import Jigsaw, WithJigsaw, pirl, pycontrast_jigsaw, vissl_jigsaw
from vantage.views.operation import Operation
from vantage.views.recipes import evaluation, interclr, linear_training, moco_v2, npid, pycontrast_a, simclr
from vantage.views.statistics import CIFAR10, IMAGENET, STL10, Statistics

__all__ = [
    "CIFAR10",
    "IMAGENET",
    "STL10",
    "Augmentation",
    "ColourJitter",
    "Evaluation",
    "Flip",
    "GaussianBlur",
    "Grayscale",
    "Jigsaw",
    "Normalise",
    "Operation",
    "RandomResizedCrop",
    "Statistics",
    "ViewMaker",
    "Views",
    "WithJigsaw",
    "evaluation",
    "interclr",
    "linear_training",
    "moco_v2",
    "npid",
    "pirl",
    "pycontrast_a",
    "pycontrast_jigsaw",
    "simclr",
    "vissl_jigsaw",
]
