"""CMC: two encoders see different channels of an image, and each is compared with what the other's bank remembers."""

from dataclasses import replace
from typing import cast

from vantage.branch import Branch
from vantage.encoders import Encoder, LinearHead, PerView, ResNet, with_backbone
from vantage.estimators import NCE, Estimator, EstimatorChoice, InfoNCE
from vantage.memory import Bank
from vantage.negatives import Sample
from vantage.positives import Remembered
from vantage.recipes.backbones import is_small, resnet
from vantage.schedules import StepDecay
from vantage.training.optimizers import SGD
from vantage.training.run import Run
from vantage.views import cmc_views

__all__ = ["cmc", "cmc_halves", "cmc_softmax"]


def cmc(size: int = 224) -> Run:
    """Lightness against color, by NCE.

    CMC (Tian et al., arXiv 1906.05849) on lightness and color of Lab, in the form of its release. `cnce_cmc` has the
    settings of the row "CMC" in Table 1 of Ring (arXiv 2010.02037).

    The loss is the sum, not the mean, of two contrasts: lightness against the bank of colors and color against the bank
    of lightness, each by noise-contrastive estimation with its own normalizer, over the same 16,384 random rows, τ .07.
    Banks have momentum .5. One encoder sees one channel and the other sees two; in evaluation their features are
    joined. PyContrast passes its two jigsaw features in swapped order, so that each meets the bank of its own modality;
    here every contrast is across modalities.

    Up to 96 pixels: ResNet-18, 4,096 rows, τ .1 (its STL-10 setting), weight decay 5e-4. InfoMin (arXiv 2005.10243,
    appendix B.2) splits STL-10 at 64 pixels on `TinyAlexNet`: `--size 64 --backbone tiny_alexnet`.
    """
    return _run("cmc", size, NCE(0.1 if is_small(size) else 0.07))


def cmc_softmax(size: int = 224) -> Run:
    """The same by cross-entropy.

    CMC (Tian et al., arXiv 1906.05849) by cross-entropy in place of noise-contrastive estimation, as its release does
    with `--softmax`; everything else as in `cmc`."""
    return _run("cmc_softmax", size, InfoNCE(0.1 if is_small(size) else 0.07))


def cmc_halves(size: int = 224) -> Run:
    """cmc with half-width networks: for each view a ResNet-50 of half the channels, 12 million weights together.

    Table 1 of InfoMin (arXiv 2005.10243; "ResNet-50*"), and the first of the three widths of its Table 6; the others
    are `cmc` and `--backbone resnet50x2`.
    """
    run = cmc(size)
    assert isinstance(run.encoders, PerView)

    def halve(encoder: Encoder) -> Encoder:
        return with_backbone(encoder, replace(cast(ResNet, encoder.backbone), width_multiplier=0.5))

    return replace(run, recipe="cmc_halves", encoders=PerView(tuple(map(halve, run.encoders.encoders))))


def _run(name: str, size: int, estimator: Estimator | EstimatorChoice) -> Run:
    small = is_small(size)
    ask = Branch(Bank(0.5), Remembered(), (Sample(4_096 if small else 16_384),), estimator, keys=(), pool=(1,))
    one, two = (replace(resnet(size), in_channels=channels) for channels in (1, 2))
    return Run(
        recipe=name,
        views=cmc_views(size),
        encoders=PerView((Encoder(one, LinearHead(128)), Encoder(two, LinearHead(128)))),
        branches=(ask, replace(ask, query=1, pool=(0,))),
        optimizer=SGD(momentum=0.9, weight_decay=5e-4 if small else 1e-4),
        learning_rate=StepDecay(0.03, milestones=(120, 160, 200)),
        epochs=240,
        batch_size=128,
    )
