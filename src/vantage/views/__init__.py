"""How views are made: batched operations on the device, with parameters per image, and the recipes of the papers."""

from vantage.views.augmentation import Augmentation, ViewMaker, Views
from vantage.views.channels import Channels, cmc, in_space, pycontrast_c
from vantage.views.colors.flows import Flow, RealNVP, TwoSided, VolumePreserving
from vantage.views.colors.learned import LearnedSpace, learned_views
from vantage.views.colors.measured import measured_statistics
from vantage.views.colors.spaces import HSV, RGB, XYZ, YIQ, YUV, ColorSpace, InSpace, Lab, Pick, YCbCr, YDbDr
from vantage.views.colors.statistics import CIFAR10, IMAGENET, STL10, Statistics
from vantage.views.evaluation import EvaluationView, Straight
from vantage.views.frequencies import Frequencies, frequencies
from vantage.views.jigsaw import Jigsaw, WithJigsaw, pirl, pycontrast_jigsaw, vissl_jigsaw
from vantage.views.multi_crop import multi_crop
from vantage.views.operations.changes import (
    AutoContrast,
    Brightness,
    Change,
    Contrast,
    Equalize,
    Identity,
    Invert,
    Posterize,
    Saturation,
    Sharpness,
    Solarize,
    SolarizeAdd,
)
from vantage.views.operations.color import ColorJitter, Grayscale, Normalize
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.filters import GaussianBlur
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.operations.lighting import Lighting
from vantage.views.operations.operation import Operation
from vantage.views.operations.randaugment import CHANGES, SHAPE_CHANGES, RandAugment
from vantage.views.operations.warps import Rotate, Shear, Translate
from vantage.views.patches import Patches
from vantage.views.recipes import evaluation, infomin, interclr, linear_training, moco_v2, npid, pycontrast_a, simclr

__all__ = [
    "CHANGES",
    "CIFAR10",
    "HSV",
    "IMAGENET",
    "RGB",
    "SHAPE_CHANGES",
    "STL10",
    "XYZ",
    "YIQ",
    "YUV",
    "Augmentation",
    "AutoContrast",
    "Brightness",
    "Change",
    "Contrast",
    "Equalize",
    "Identity",
    "Invert",
    "Posterize",
    "Rotate",
    "Saturation",
    "Sharpness",
    "Shear",
    "Solarize",
    "SolarizeAdd",
    "Translate",
    "Channels",
    "ColorJitter",
    "ColorSpace",
    "EvaluationView",
    "HorizontalFlip",
    "Flow",
    "Frequencies",
    "GaussianBlur",
    "Grayscale",
    "InSpace",
    "Jigsaw",
    "Lab",
    "Lighting",
    "LearnedSpace",
    "Normalize",
    "Operation",
    "Patches",
    "Pick",
    "RandAugment",
    "RandomResizedCrop",
    "RealNVP",
    "Statistics",
    "Straight",
    "TwoSided",
    "ViewMaker",
    "Views",
    "VolumePreserving",
    "WithJigsaw",
    "YCbCr",
    "YDbDr",
    "cmc",
    "evaluation",
    "frequencies",
    "in_space",
    "infomin",
    "interclr",
    "learned_views",
    "linear_training",
    "measured_statistics",
    "moco_v2",
    "multi_crop",
    "npid",
    "pirl",
    "pycontrast_a",
    "pycontrast_c",
    "pycontrast_jigsaw",
    "simclr",
    "vissl_jigsaw",
]
