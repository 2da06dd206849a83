"""InterCLR: besides the image itself, images of its cluster are positives."""

from dataclasses import replace

from vantage.branch import Branch
from vantage.encoders import MLP, Encoder, Momentum, Shared, SplitBatchNorm
from vantage.estimators import InfoNCE
from vantage.memory import ClusteredBank, InnerProduct, Queue, StoreOf
from vantage.negatives import Count, Distinct, Hardest, OtherClusters, OtherImages, Rule, Sample, Share, Subset
from vantage.positives import ClusterMate, OtherViews, Remembered
from vantage.recipes.backbones import is_small, resnet
from vantage.schedules import Constant, CosineByEpoch, CosineByStep
from vantage.training.optimizers import LARS, SGD
from vantage.training.run import Run
from vantage.views import interclr_views, moco_v2_views

__all__ = ["interclr", "interclr_1000", "interclr_exact", "interclr_moco", "interclr_moco_released"]

_SEMI_HARD = (Subset(163_840), OtherClusters(), Hardest(Share(Constant(0.1))))
"""The hardest tenth of the other clusters' rows in a random subset: about 16,384 rows. The queries of a step share the
subset; see `Subset`, which names the rules that draw for each query separately."""


def interclr(size: int = 224) -> Run:
    """Mates of online clusters as positives.

    InterCLR (Xie et al., arXiv 2008.11702, §5.1 and Table 1) with a bank, as in the paper; the loss is λ L_intra +
    (1 − λ) L_inter with λ = .75.

    Within an image (L_intra): its own row against 16,384 random rows; if that row is drawn too, it is dropped and not
    replaced. Between images (L_inter): MarginNCE (m = −.5) of one row of the image's cluster, which may be its own,
    against semi-hard rows of other clusters. One view, τ .1, one bank of momentum .5, whose first rows and clusters
    come from the untrained network.

    Deviations: losses are means, not sums. As in the release, centroids move every 10 steps (every step on small sets),
    and clusters of fewer than 20 images are dissolved. Above 163,840 images, the queries of a step draw semi-hard rows
    from the same random subset of the bank (`Subset`). For each query alone this has the distribution of the paper's
    draw, from a pool that is within a percent of a tenth on ImageNet. Smaller sets take the whole tenth, which is the
    paper's draw with K as large as its pool.

    `interclr_exact` has the exact pool, and `vantage.recipes.interclr_study` the settings of section 5.2. The release
    has an option that its configuration does not use: λ = 1 for the first w epochs. No recipe has this warm-up, since
    neither the paper nor the release trains with a w above 0. It is the weight ByEpoch(Linear(1.0, 0.75, 1), every=w)
    within an image and ByEpoch(Linear(0.0, 0.25, 1), every=w) between images.

    Up to 96 pixels: ResNet-18, a head of width 512, weight decay 5e-4.
    """
    negatives = (Sample(16_384), OtherImages())
    intra = Branch(
        ClusteredBank(0.5, first=0), Remembered(), negatives, InfoNCE(0.1), Constant(0.75), keys=(), pool=(0,)
    )
    inter = Branch(StoreOf(0), ClusterMate(), _SEMI_HARD, InfoNCE(0.1, margin=-0.5), Constant(0.25), keys=(), pool=(0,))
    return Run(
        recipe="interclr",
        views=interclr_views(size),
        encoders=Shared(Encoder(resnet(size), MLP(_hidden_width(size), 128))),
        branches=(intra, inter),
        optimizer=SGD(momentum=0.9, weight_decay=5e-4 if is_small(size) else 1e-4),
        learning_rate=CosineByEpoch(0.03, final=3e-5),
    )


def interclr_exact(size: int = 224) -> Run:
    """interclr with separate draws for each query, from the nearest tenth of all rows of other clusters.

    Exactly as in arXiv 2008.11702, section 3.2: 16,384 rows are drawn without replacement from the exact pool. This
    ranks the whole bank for every query, which `interclr` does not.
    """
    return _semi_hard(interclr(size), "interclr_exact", (OtherClusters(), Hardest(), Distinct(16_384)))


def interclr_1000(size: int = 224) -> Run:
    """interclr for 1,000 epochs of 4,096 images, by LARS (Table 1, its last row).

    Appendix A of arXiv 2008.11702: weight decay 1e-6, a learning rate of 4.8 after ten epochs of warm-up, falling along
    a cosine to 4.8e-3; everything else as in `interclr`. An epoch has so few steps (312) that centroids move at each.
    """
    return replace(
        interclr(size),
        recipe="interclr_1000",
        optimizer=LARS(weight_decay=1e-6),
        learning_rate=CosineByStep(4.8, final=4.8e-3, warmup_epochs=10),
        epochs=1_000,
        batch_size=4_096,
    )


def interclr_moco(size: int = 224) -> Run:
    """The same on MoCo v2, as released.

    InterCLR on MoCo v2, as released (arXiv 2008.11702, which has no table of it; λ = .75, m = −.5, τ .2): MoCo's
    queue within an image, and between images a bank of the momentum encoder's keys, replaced at every visit.

    Nearest centroids are found by inner product, as released. Deviations: the semi-hard pool is the nearest tenth of
    the *other clusters'* rows, as the paper says. The release takes the nearest 128,000 of all rows and redraws those
    of the image's cluster (`interclr_moco_released`). Pool, subset and first clusters are as in `interclr`.

    Up to 96 pixels: `moco_v2`'s small-image values.
    """
    small = is_small(size)
    temperature = 0.1 if small else 0.2
    intra = Branch(Queue(4_096 if small else 65_536), OtherViews(), (), InfoNCE(temperature), Constant(0.75))
    memory = ClusteredBank(0.0, first=0, closeness=InnerProduct())
    inter = Branch(
        memory, ClusterMate(), _SEMI_HARD, InfoNCE(temperature, margin=-0.5), Constant(0.25), keys=(), pool=(1,)
    )
    return Run(
        recipe="interclr_moco",
        views=moco_v2_views(size),
        encoders=Momentum(
            Encoder(resnet(size), MLP(_hidden_width(size), 128), SplitBatchNorm(8)), Constant(0.99 if small else 0.999)
        ),
        branches=(intra, inter),
        optimizer=SGD(momentum=0.9, weight_decay=5e-4 if small else 1e-4),
        learning_rate=CosineByEpoch(0.03),
    )


def interclr_moco_released(size: int = 224) -> Run:
    """interclr_moco with the release's pool: 16,384 of the nearest 128,000 rows, without the image's cluster.

    The code of arXiv 2008.11702 redraws rows of the image's cluster. Here they are left out, so that no row is drawn
    twice, and drawing ends even if that cluster fills the pool. `Run.fit` takes at most a quarter of the images
    into the pool.
    """
    pool = (Hardest(Count(128_000)), OtherClusters(), Distinct(16_384))
    return _semi_hard(interclr_moco(size), "interclr_moco_released", pool)


def _semi_hard(run: Run, name: str, negatives: tuple[Rule, ...]) -> Run:
    """The run with other negatives between images."""
    within, between = run.branches
    return replace(run, recipe=name, branches=(within, replace(between, negatives=negatives)))


def _hidden_width(size: int) -> int:
    return 512 if is_small(size) else 2048
