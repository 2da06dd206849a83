"""How views are made: batched operations on the device, with parameters per image, and the recipes of the papers."""

from vantage.views.augmentation import Augmentation, ViewMaker, Views
from vantage.views.channels import Channels, cmc_views, in_space, pycontrast_c_views
from vantage.views.colors.flows import Flow, RealNVP, TwoSided, VolumePreserving
from vantage.views.colors.learned import LearnedSpace, learned_space
from vantage.views.colors.measured import measured_statistics
from vantage.views.colors.spaces import HSV, RGB, XYZ, YIQ, YUV, ColorSpace, InSpace, Lab, Pick, YCbCr, YDbDr
from vantage.views.colors.statistics import CIFAR10, IMAGENET, STL10, Statistics
from vantage.views.evaluation import EvaluationView, Straight
from vantage.views.frequencies import Frequencies, frequency_views
from vantage.views.jigsaw import Jigsaw, WithJigsaw, pirl_views, pycontrast_jigsaw, vissl_jigsaw
from vantage.views.multi_crop import multi_crop_views
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
from vantage.views.operations.crops import RandomResizedCrop, SquareCrop
from vantage.views.operations.filters import GaussianBlur
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.operations.lighting import Lighting
from vantage.views.operations.operation import Operation
from vantage.views.operations.randaugment import CHANGES, SHAPE_CHANGES, RandAugment
from vantage.views.operations.warps import Rotate, Shear, Translate
from vantage.views.patches import Patches
from vantage.views.recipes import (
    infomin_views,
    interclr_views,
    moco_v2_views,
    npid_views,
    pycontrast_a_views,
    simclr_views,
)

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
    "SquareCrop",
    "Statistics",
    "Straight",
    "TwoSided",
    "ViewMaker",
    "Views",
    "VolumePreserving",
    "WithJigsaw",
    "YCbCr",
    "YDbDr",
    "cmc_views",
    "frequency_views",
    "in_space",
    "infomin_views",
    "interclr_views",
    "learned_space",
    "measured_statistics",
    "moco_v2_views",
    "multi_crop_views",
    "npid_views",
    "pirl_views",
    "pycontrast_a_views",
    "pycontrast_c_views",
    "pycontrast_jigsaw",
    "simclr_views",
    "vissl_jigsaw",
]
