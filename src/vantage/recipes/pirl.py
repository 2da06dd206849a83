"""PIRL: an image and its jigsaw are both pulled towards what a bank remembers of the image."""

from dataclasses import replace

from vantage.branch import Branch
from vantage.encoders import Encoder, JigsawHead, LinearHead, Shared
from vantage.estimators import NCE, InfoNCE
from vantage.memory import Bank, StoreOf
from vantage.negatives import Sample
from vantage.positives import Remembered
from vantage.recipes.backbones import is_small, resnet
from vantage.recipes.instance_discrimination import instance_discrimination
from vantage.schedules import Constant, CosineByEpoch
from vantage.training.optimizers import SGD, BiasAndNorm
from vantage.training.run import Run
from vantage.views import pirl_views, vissl_views

__all__ = ["pirl", "pirl_pycontrast", "pirl_vissl"]


def pirl(size: int = 224) -> Run:
    """An image and its jigsaw against a bank.

    PIRL (Misra and van der Maaten, arXiv 1912.01991), in the form of the PyContrast code: instance discrimination
    for an image and, with the same weight, for a jigsaw of it, β = .5, τ .07.

    Both are compared with the image's own row and the same 65,536 random rows (4,096 for small images) of a bank, to
    which only whole images are written. The learning rate falls at epochs 120 and 160, as in instance discrimination.
    `pirl_pycontrast` has PyContrast's own schedule, and `pirl_vissl` follows the authors' code.

    With β = 0 it would be `instance_discrimination`, which has τ .1 up to 96 pixels. Up to 96 pixels: the other
    small-image values of that recipe.
    """
    small = is_small(size)
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


def pirl_pycontrast(size: int = 224) -> Run:
    """pirl on PyContrast's schedule: the learning rate falls along a cosine to a thousandth, from epoch 1 on."""
    return replace(pirl(size), recipe="pirl_pycontrast", learning_rate=CosineByEpoch(0.03, final=3e-5, first=1))


def pirl_vissl(size: int = 224) -> Run:
    """pirl as in the authors' code (VISSL): NCE over 32,000 rows, 800 epochs, batch 1,024, colors changed per patch.

    Image and jigsaw draw separate rows, and the learning rate falls along a cosine from .12 to 1.2e-4. BatchNorm's
    parameters and biases do not decay. Deviations: each of the two contrasts has its own normalizer, while that code
    has one for both; its photometric distortion of views (`vissl_views`) is left out.
    """
    base = pirl(size)
    whole, jigsaw = base.branches
    count = 4_096 if is_small(size) else 32_000
    nce = NCE(0.07)
    return replace(
        base,
        recipe="pirl_vissl",
        views=vissl_views(size),
        branches=(
            replace(whole, negatives=(Sample(count),), estimator=nce),
            replace(jigsaw, negatives=(Sample(count, salt=1),), estimator=nce),
        ),
        optimizer=SGD(momentum=0.9, weight_decay=1e-4, exclude=BiasAndNorm()),
        learning_rate=CosineByEpoch(0.12, final=1.2e-4),
        epochs=800,
        batch_size=1_024,
    )
