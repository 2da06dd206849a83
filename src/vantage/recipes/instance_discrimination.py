"""IR: instance discrimination (NPID), each image against what a bank remembers of all images."""

from dataclasses import replace

from vantage.branch import Branch
from vantage.encoders import Encoder, LinearHead, Shared
from vantage.estimators import NCE, Estimator, EstimatorChoice, InfoNCE
from vantage.memory import Bank
from vantage.negatives import OtherImages, Rule, Sample
from vantage.positives import Remembered
from vantage.recipes.backbones import is_small, resnet
from vantage.schedules import CosineByEpoch, StepDecay
from vantage.training.optimizers import SGD
from vantage.training.run import Run
from vantage.views import npid_views, pycontrast_a_views

__all__ = [
    "instance_discrimination",
    "instance_discrimination_full",
    "instance_discrimination_nce",
    "instance_discrimination_pycontrast",
]


def instance_discrimination(size: int = 224) -> Run:
    """Each image against a bank's rows.

    Wu et al., arXiv 1805.01978, with cross-entropy over the image's own row and 65,536 random rows (4,096 for small
    images).

    One view; the positive is the image's own row of a bank of momentum .5. Negatives are drawn with replacement and
    may include it, as in the release. Cross-entropy is what the later release and PyContrast use;
    `instance_discrimination_nce` is the paper's objective. Up to 96 pixels: ResNet-18, τ .1, batch 128, weight decay
    5e-4 (the release's CIFAR script).
    """
    count = 4_096 if is_small(size) else 65_536
    return _run("instance_discrimination", size, (Sample(count),), InfoNCE(_temperature(size)))


def instance_discrimination_nce(size: int = 224) -> Run:
    """The same by NCE, as the paper trains.

    Wu et al., arXiv 1805.01978, with noise-contrastive estimation over 4,096 random rows, as the paper trains.
    """
    return _run("instance_discrimination_nce", size, (Sample(4_096),), NCE(_temperature(size)))


def instance_discrimination_full(size: int = 224) -> Run:
    """The same by the full softmax.

    Wu et al., arXiv 1805.01978, Eq. 2: the full softmax over all other rows of the bank.
    """
    return _run("instance_discrimination_full", size, (OtherImages(),), InfoNCE(_temperature(size)))


def instance_discrimination_pycontrast(size: int = 224) -> Run:
    """instance_discrimination on PyContrast's views and schedule.

    Its smallest crop is .08 of the image, jitter comes before grayscale, and the learning rate falls along a cosine to
    a thousandth, from epoch 1 on. InfoMin (arXiv 2005.10243, Tables 2 and 3), which is by the authors of that code,
    trains its detectors from 200 epochs of instance discrimination of its own."""
    return replace(
        instance_discrimination(size),
        recipe="instance_discrimination_pycontrast",
        views=pycontrast_a_views(size, count=1, smallest_area=0.08),
        learning_rate=CosineByEpoch(0.03, final=3e-5, first=1),
    )


def _temperature(size: int) -> float:
    return 0.1 if is_small(size) else 0.07


def _run(name: str, size: int, negatives: tuple[Rule, ...], estimator: Estimator | EstimatorChoice) -> Run:
    small = is_small(size)
    branch = Branch(Bank(0.5), Remembered(), negatives, estimator, keys=(), pool=(0,))
    run = Run(
        recipe=name,
        views=npid_views(size, count=1),
        encoders=Shared(Encoder(resnet(size), LinearHead(128))),
        branches=(branch,),
        optimizer=SGD(momentum=0.9, weight_decay=5e-4 if small else 1e-4),
        learning_rate=StepDecay(0.03, milestones=(120, 160)),
    )
    return replace(run, batch_size=128) if small else run
