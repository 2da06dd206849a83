"""JCL: infinitely many positive keys for a query, through their mean and variance.

Cai et al., arXiv 2009.14776. All keys of a step are shuffled one by one (supplement, section 3), so that the keys of an
image share BatchNorm's statistics with those of others.
"""

from dataclasses import replace

from vantage.branch import Branch
from vantage.encoders import Momentum, backbone_named, with_backbone
from vantage.estimators import JCL, Estimator, InfoNCE
from vantage.memory.remember import MeanKey
from vantage.negatives import Ring, Rule
from vantage.positives import FixedViews
from vantage.recipes.backbones import is_small
from vantage.recipes.moco import moco_v2
from vantage.recipes.ring import annealing
from vantage.schedules import CosineByEpoch, RampByEpoch
from vantage.training.optimizers import SGD
from vantage.training.run import Run
from vantage.views import moco_v2_views

__all__ = ["jcl", "jcl_released", "jcl_resnet18", "jcl_ring", "jcl_vanilla", "with_keys"]

_KEYS, _TEMPERATURE = (1, 2, 3, 4, 5), 0.2


def jcl(size: int = 224) -> Run:
    """MoCo v2 with infinitely many positives.

    JCL (Cai et al., arXiv 2009.14776), for its Table 1: MoCo v2 with five keys per image, τ .2, λ 4, batch 512,
    learning rate .06.

    The queue holds the means of keys, which are not normalized. Up to 96 pixels: `moco_v2`'s small-image values,
    batch 256 and learning rate .03 among them. Only τ stays .2, as in the paper's ablations with ResNet-18, since the
    spread of the keys has the weight λ / 2τ².
    """
    return _at_512(_run("jcl", size, (), JCL(_TEMPERATURE)), size)


def jcl_released(size: int = 224) -> Run:
    """jcl as its release trains: four keys, and λ that rises to 2 in equal steps, one per epoch; batch 256.

    Code of arXiv 2009.14776: `k_crops 5` counts the query too; in epoch e of E, from 0, λ is 2 (e + 1) / E.
    """
    run = _run("jcl_released", size, (), JCL(_TEMPERATURE), (1, 2, 3, 4))
    ramp = RampByEpoch(2.0, run.epochs)
    return replace(run, branches=(replace(run.branches[0], estimator=JCL(_TEMPERATURE, ramp)),))


def jcl_resnet18(size: int = 224) -> Run:
    """jcl at the setting of its ablations: ResNet-18, 100 epochs, batch 128, learning rate .1.

    Supplement of arXiv 2009.14776, section 4: on the 100 classes of ImageNet that `vantage.data.IMAGENET_100` names, a
    cosine, τ .2, five keys, λ 4; evaluated by a classifier at learning rate 10. The paper does not state queue and
    momentum; they are those of `jcl`. BatchNorm has MoCo's eight groups, of 16 images each.
    """
    run = _run("jcl_resnet18", size, (), JCL(_TEMPERATURE))
    role = run.encoders
    assert isinstance(role, Momentum)
    encoder = with_backbone(role.encoder, backbone_named("resnet18", size))
    return replace(
        run,
        encoders=replace(role, encoder=encoder),
        optimizer=SGD(momentum=0.9, weight_decay=1e-4),
        learning_rate=CosineByEpoch(0.1),
        epochs=100,
        batch_size=128,
    )


def jcl_vanilla(size: int = 224) -> Run:
    """What JCL is compared with: five keys.

    JCL's baseline (arXiv 2009.14776, Eq. 3 and Figure 1b): InfoNCE's mean over five keys; everything else as in `jcl`,
    the queue of means included."""
    return _at_512(_run("jcl_vanilla", size, (), InfoNCE(_TEMPERATURE)), size)


def jcl_ring(size: int = 224) -> Run:
    """JCL against Ring's negatives.

    JCL's estimator (arXiv 2009.14776) on Ring's annealed negatives (arXiv 2010.02037), batch 256: a combination that
    no paper has.
    """
    return _run("jcl_ring", size, (Ring(annealing()),), JCL(_TEMPERATURE))


def with_keys(size: int) -> Run:
    """JCL at MoCo v2's batch size, for combinations."""
    return _run("jcl", size, (), JCL(_TEMPERATURE))


def _run(name: str, size: int, negatives: tuple[Rule, ...], estimator: Estimator, keys: tuple[int, ...] = _KEYS) -> Run:
    base = moco_v2(size)
    branch = Branch(base.branches[0].memory, FixedViews(), negatives, estimator, keys=keys, remember=MeanKey())
    assert isinstance(base.encoders, Momentum)
    return replace(
        base,
        recipe=name,
        views=moco_v2_views(size, count=1 + len(keys)),
        encoders=replace(base.encoders, shuffle="keys"),
        branches=(branch,),
    )


def _at_512(run: Run, size: int) -> Run:
    """The paper's batch size and learning rate, for large images."""
    return run if is_small(size) else run.rescale(batch_size=512)
