"""Ring: the settings of its paper (CNCE), and the methods that it is compared with.

Wu et al., arXiv 2010.02037, section 5. On all four sets and in every row of its tables, base methods included:
ResNet-18 and a linear head, images resized to 256 and crops of 224 pixels, normalized with the mean and standard
deviation of the data set, τ .07, SGD at .03 with momentum .9 and weight decay 1e-4, 300 epochs with a learning rate
that falls at 200 and 250, batch 256 (CMC 128). The bank holds last epoch's embeddings: momentum 0. What the paper does
not state is taken from the release: strengths and order of the views' operations, 4,095 draws (its 4,096 with the
positive).

All functions but `cnce_cmc` and `cnce_moco_released` take the `statistics` of the data: ImageNet's unless given;
`measured_statistics(source)` measures those of any set. The paper does not say how an image becomes square: here the
shorter side is resized to 256 pixels and the middle is taken. Up to 96 pixels, network, views, batch and weight decay
are those of the method's own small-image variant.
"""

from dataclasses import replace

from vantage.composition.fitting import everywhere
from vantage.encoders import MLP, Encoder, Momentum, ResNet
from vantage.memory import Bank, Memory, Queue, ReclusteredBank, StoreOf
from vantage.negatives import Rule, Sample
from vantage.recipes.backbones import is_small
from vantage.recipes.cmc import cmc_softmax
from vantage.recipes.instance_discrimination import instance_discrimination
from vantage.recipes.local_aggregation import local_aggregation
from vantage.recipes.moco import moco_v1
from vantage.schedules import StepDecay
from vantage.training.optimizers import SGD
from vantage.training.run import Run
from vantage.views import IMAGENET, Augmentation, SquareCrop, Statistics, npid_views

__all__ = ["cnce_cmc", "cnce_ir", "cnce_la", "cnce_moco", "cnce_moco_released", "variant_of"]

DRAWS = 4_095
TEMPERATURE = 0.07


def cnce_ir(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """IR as Ring compares with it.

    The row "IR" of Table 1 of Ring (arXiv 2010.02037): instance discrimination against 4,095 random rows of last
    epoch's embeddings, at the settings of that paper (see `vantage.recipes.cnce`).
    """
    base = replace(instance_discrimination(size), views=npid_views(size, 1, statistics))
    return _with_paper_settings(base, "cnce_ir", size, (Sample(DRAWS),), Bank(0.0))


def cnce_moco(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """MoCo as Ring compares with it.

    The row "MoCo" of Table 1 of Ring (arXiv 2010.02037): `moco_v1` at the settings of that paper (see
    `vantage.recipes.cnce`). Its queue holds 65,536 keys, as in `ring_moco`, so that only the negatives differ; that
    of the release is shorter (`cnce_moco_released`).
    """
    base = replace(moco_v1(size), views=npid_views(size, 2, statistics))
    return _with_paper_settings(base, "cnce_moco", size, ())


def cnce_moco_released(size: int = 224) -> Run:
    """cnce_moco as its release is configured: a queue of 4,096, MLP head, 200 epochs, resized crops.

    Code of arXiv 2010.02037, whose MoCo with a ring has 65,536 keys: a learning rate that falls at epochs 136 and 166,
    a head of 512-512-128, and random resized crops normalized with ImageNet's statistics on every set. BatchNorm sees
    the whole batch, since that code trains on one GPU, where its shuffle changes nothing.
    """
    run = variant_of(cnce_moco(size), "cnce_moco_released", memory=Queue(4_096))
    role = run.encoders
    assert isinstance(role, Momentum)
    encoders = replace(role, encoder=Encoder(role.encoder.backbone, MLP(512, 128)))
    decay = StepDecay(0.03, milestones=(136, 166))
    return replace(run, views=npid_views(size, 2), encoders=encoders, learning_rate=decay, epochs=200)


def cnce_cmc(size: int = 224) -> Run:
    """CMC as Ring compares with it.

    The row "CMC" of Table 1 of Ring (arXiv 2010.02037): CMC by cross-entropy, two ResNet-18, 4,095 rows in each
    direction, batch 128, at the settings of that paper (see `vantage.recipes.cnce`). Views are those of CMC, flipped
    lightness and color, normalized in that space. Grayscale, which the paper lists for all methods, would remove the
    colors.
    """
    return _with_paper_settings(cmc_softmax(size), "cnce_cmc", size, (Sample(DRAWS),), Bank(0.0))


def cnce_la(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """LA as Ring compares with it.

    The row "LA" of Table 1 of Ring (arXiv 2010.02037): local aggregation at the settings of that paper (see
    `vantage.recipes.cnce`), with batch 256. The paper does not state neighbors, clusters, and the start after ten
    epochs; they are those of `local_aggregation`, whose loss is Eq. 5 of that paper up to a constant.
    """
    base = replace(local_aggregation(size), views=npid_views(size, 1, statistics))
    base = base if is_small(size) else replace(base, batch_size=256, optimizer=SGD())
    (branch,) = base.branches
    assert isinstance(branch.memory, ReclusteredBank)
    return _with_paper_settings(base, "cnce_la", size, branch.negatives, replace(branch.memory, momentum=0.0))


def variant_of(base: Run, recipe: str, **changes: object) -> Run:
    """The run under another name, with these changes in every branch."""
    return replace(base, recipe=recipe, branches=tuple(replace(branch, **changes) for branch in base.branches))


def _with_paper_settings(
    base: Run, recipe: str, size: int, negatives: tuple[Rule, ...], bank: Memory | None = None
) -> Run:
    """A method with the paper's network, crops, τ, epochs and learning rate."""
    base = variant_of(base, recipe, negatives=negatives)
    branches = tuple(
        replace(
            branch,
            estimator=replace(branch.estimator, temperature=TEMPERATURE),  # pyright: ignore[reportArgumentType]
            memory=branch.memory if bank is None or isinstance(branch.memory, StoreOf) else bank,
        )
        for branch in base.branches
    )
    run = replace(base, branches=branches, learning_rate=StepDecay(0.03, milestones=(200, 250)), epochs=300)
    return run if is_small(size) else _on_large_images(run, size)


def _on_large_images(run: Run, size: int) -> Run:
    """ResNet-18, and square crops of images 8/7 as large."""
    crop = SquareCrop(size, round(size * 8 / 7))
    views = everywhere(run.views, lambda part: replace(part, crop=crop) if isinstance(part, Augmentation) else part)
    encoders = everywhere(run.encoders, lambda part: replace(part, depth=18) if isinstance(part, ResNet) else part)
    return replace(run, views=views, encoders=encoders)
