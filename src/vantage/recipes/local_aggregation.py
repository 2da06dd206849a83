"""LA: local aggregation, which pulls together near images of the same cluster."""

from dataclasses import replace

from vantage.branch import Branch
from vantage.encoders import Encoder, LinearHead, Shared
from vantage.estimators import NCE, LocalAggregation
from vantage.memory import ReclusteredBank, StoreOf
from vantage.negatives import Count, Hardest, OtherClusters, Sample
from vantage.positives import NearMates, Remembered
from vantage.recipes.backbones import is_small, resnet
from vantage.schedules import ByEpoch, Linear, StepDecay
from vantage.training.optimizers import SGD, Named, NoParameters
from vantage.training.run import Run
from vantage.views import npid_views

__all__ = ["local_aggregation", "local_aggregation_warmed"]


def local_aggregation(size: int = 224) -> Run:
    """Near mates of a cluster as positives.

    Local aggregation (Zhuang et al., arXiv 1903.12355, Table 1), in the form of its release.

    Of the 4,096 rows of the bank nearest to an image, those that share its cluster in any of 10 clusterings are
    positives, and the rest negatives. The bank has momentum .5 and is reclustered every epoch from the tenth on.

    Deviations: before the first clustering every image is a cluster of its own, which is instance discrimination
    against the nearest rows. The paper warms up with noise-contrastive estimation instead (`local_aggregation_warmed`),
    a branch that would make every later step slower too. An image without a mate among its nearest rows does not count.
    If the batch size divides the number of images, the release clusters only once; here clustering goes on.

    Parameters with "bn" in their names do not decay. Up to 96 pixels: ResNet-18, τ .1 and weight decay 5e-4 of all
    parameters, as `instance_discrimination`.
    """
    small = is_small(size)
    branch = Branch(
        ReclusteredBank(0.5, clusters=30_000, clusterings=10, first=10),
        NearMates(4_096),
        (Hardest(Count(4_096)), OtherClusters()),
        LocalAggregation(0.1 if small else 0.07),
        keys=(),
        pool=(0,),
    )
    return Run(
        recipe="local_aggregation",
        views=npid_views(size, count=1),
        encoders=Shared(Encoder(resnet(size), LinearHead(128))),
        branches=(branch,),
        optimizer=SGD(0.9, 5e-4, NoParameters()) if small else SGD(0.9, 1e-4, Named("bn")),
        learning_rate=StepDecay(0.03, milestones=(160, 190)),
        batch_size=128,
    )


def local_aggregation_warmed(size: int = 224) -> Run:
    """local_aggregation after ten epochs of instance discrimination by NCE over 4,096 rows, as the paper warms up.

    Every step computes both contrasts, though only one of them counts, so a step takes longer than in
    `local_aggregation`."""
    run = local_aggregation(size)
    (near,) = run.branches
    warmup = replace(
        near,
        positives=Remembered(),
        negatives=(Sample(4_096),),
        estimator=NCE(0.1 if is_small(size) else 0.07),
        weight=ByEpoch(Linear(1.0, 0.0, 1), every=10.0),
    )
    near = replace(near, memory=StoreOf(0), weight=ByEpoch(Linear(0.0, 1.0, 1), every=10.0))
    return replace(run, recipe="local_aggregation_warmed", branches=(warmup, near))
