"""MoCo: a momentum encoder makes the keys, and a queue remembers them."""

from vantage.branch import Branch
from vantage.encoders import MLP, Encoder, LinearHead, Momentum, SplitBatchNorm
from vantage.estimators import InfoNCE
from vantage.memory import Queue
from vantage.positives import OtherViews
from vantage.recipes.backbones import is_small, resnet
from vantage.schedules import Constant, CosineByEpoch, StepDecay
from vantage.training.optimizers import SGD
from vantage.training.run import Run
from vantage.views import moco_v2_views, npid_views

__all__ = ["moco_v1", "moco_v2"]


def moco_v1(size: int = 224) -> Run:
    """A momentum encoder and a queue of keys.

    MoCo (He et al., arXiv 1911.05722): linear head, τ .07, crops of instance discrimination, a learning rate that
    falls at epochs 120 and 160.

    Up to 96 pixels: `moco_v2`'s network, queue, momentum and weight decay for small images, with this head, τ, views
    and learning rate.
    """
    small = is_small(size)
    encoder = Encoder(resnet(size), LinearHead(128), SplitBatchNorm(8))
    return Run(
        recipe="moco_v1",
        views=npid_views(size, count=2),
        encoders=Momentum(encoder, Constant(0.99 if small else 0.999)),
        branches=(Branch(Queue(4_096 if small else 65_536), OtherViews(), (), InfoNCE(0.07)),),
        optimizer=SGD(momentum=0.9, weight_decay=5e-4 if small else 1e-4),
        learning_rate=StepDecay(0.03, milestones=(120, 160)),
    )


def moco_v2(size: int = 224) -> Run:
    """MoCo with an MLP head, blur and a cosine.

    MoCo v2 (Chen et al., arXiv 2003.04297): MLP head without normalization, τ .2, blur, a learning rate along a
    cosine, constant within an epoch.

    Up to 96 pixels: ResNet-18, a queue of 4,096, momentum .99, τ .1 and weight decay 5e-4, as in the MoCo authors' own
    CIFAR-10 demonstration (which trained at batch 512 and learning rate .06: this rate by the linear scaling rule).
    """
    small = is_small(size)
    hidden_width = 512 if small else 2048
    encoder = Encoder(resnet(size), MLP(hidden_width, 128), SplitBatchNorm(8))
    return Run(
        recipe="moco_v2",
        views=moco_v2_views(size),
        encoders=Momentum(encoder, Constant(0.99 if small else 0.999)),
        branches=(Branch(Queue(4_096 if small else 65_536), OtherViews(), (), InfoNCE(0.1 if small else 0.2)),),
        optimizer=SGD(momentum=0.9, weight_decay=5e-4 if small else 1e-4),
        learning_rate=CosineByEpoch(0.03),
    )
