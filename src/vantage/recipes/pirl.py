"""PIRL: an image and its jigsaw are both pulled towards what a bank remembers of the image."""

from dataclasses import replace

from vantage.branch import Branch
from vantage.encoders import Encoder, JigsawHead, LinearHead, Shared
from vantage.estimators import InfoNCE
from vantage.memory import Bank, StoreOf
from vantage.negatives import Sample
from vantage.positives import Remembered
from vantage.recipes.backbones import SMALL, resnet
from vantage.recipes.instance_discrimination import instance_discrimination
from vantage.schedules import Constant
from vantage.training.run import Run
from vantage.views import pirl_views

__all__ = ["pirl"]


def pirl(size: int = 224) -> Run:
    """An image and its jigsaw against a bank.

    PIRL (Misra and van der Maaten, arXiv 1912.01991), in the form of the PyContrast code: instance discrimination
    for an image and, with the same weight, for a jigsaw of it, β = .5, τ .07; the row of that name in Table 1 of
    InterCLR (arXiv 2008.11702).

    Both compare with the own row and the same 65,536 random rows (4,096 for small images) of a bank that only whole
    images are written to. The rate falls at epochs 120 and 160, as for instance discrimination, where PyContrast itself
    has CosineByEpoch(0.03, final=3e-5). The authors' own code (VISSL) has noise-contrastive estimation over 32,000, 800
    epochs of 1,024 images, and color changes on every patch (`vissl_jigsaw`).

    Up to 96 pixels: the other small-image values of `instance_discrimination`, which is PIRL with β = 0.
    """
    small = size <= SMALL
    whole = Branch(
        Bank(0.5),
        Remembered(),
        (Sample(4_096 if small else 65_536),),
        InfoNCE(0.07),
        Constant(0.5),
        keys=(),
        pool=(0,),
    )
    return replace(
        instance_discrimination(size),
        recipe="pirl",
        views=pirl_views(size),
        encoders=Shared(Encoder(resnet(size), LinearHead(128), jigsaw=JigsawHead(LinearHead(128)))),
        branches=(whole, replace(whole, memory=StoreOf(0), query=1)),
    )
