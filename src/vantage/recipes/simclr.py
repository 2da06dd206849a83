"""SimCLR: two views of each image, each against the whole batch."""

from dataclasses import replace

from vantage.branch import Branch
from vantage.encoders import Encoder, NormalizedMLP, Shared
from vantage.estimators import InfoNCE
from vantage.memory import InBatch
from vantage.negatives import OtherImages
from vantage.positives import OtherViews
from vantage.recipes.backbones import is_small, resnet
from vantage.schedules import Constant, CosineByStep
from vantage.training.optimizers import LARS
from vantage.training.run import Run
from vantage.views import simclr_views

__all__ = ["simclr", "simclr_1000"]


def simclr(size: int = 224) -> Run:
    """NT-Xent against the whole batch.

    SimCLR (Chen et al., arXiv 2002.05709): NT-Xent as two branches, one per direction, over a pool of both views.

    LARS at .3 · batch / 256 with 10 epochs of warm-up, τ .1. The paper's batch is 4,096. Here it is 256, which fits on
    one device, with the learning rate scaled to it; `simclr_1000` has the paper's.

    Up to 96 pixels: ResNet-18, color strength .5, no blur at 32 pixels, τ .5 (SimCLR, appendix B.9), learning rate
    .4 · batch / 256 and weight decay 1e-4 (solo-learn's values for CIFAR).
    """
    small = is_small(size)
    hidden_width = 512 if small else 2048
    encoder = Encoder(resnet(size, zero_init_residual=not small), NormalizedMLP(hidden_width, 128))
    estimator = InfoNCE(0.5 if small else 0.1)

    def direction(query: int, key: int) -> Branch:
        half = Constant(0.5)
        return Branch(InBatch(), OtherViews(), (OtherImages(),), estimator, half, query, (key,), (0, 1))

    return Run(
        recipe="simclr",
        views=simclr_views(size, strength=0.5 if small else 1.0),
        encoders=Shared(encoder),
        branches=(direction(0, 1), direction(1, 0)),
        optimizer=LARS(weight_decay=1e-4 if small else 1e-6),
        learning_rate=CosineByStep(0.4 if small else 0.3, warmup_epochs=10),
    )


def simclr_1000(size: int = 224) -> Run:
    """simclr for 1,000 epochs of 4,096 images, at a learning rate of 4.8: the paper's largest setting (its Table 6)."""
    run = simclr(size)
    learning_rate = run.learning_rate.scale(4_096 / run.batch_size)
    return replace(run, recipe="simclr_1000", learning_rate=learning_rate, epochs=1_000, batch_size=4_096)
