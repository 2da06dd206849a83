"""JCL: infinitely many positive keys for a query, through their mean and variance."""

from dataclasses import replace

from vantage.branch import Branch
from vantage.estimators import JCL, Estimator, InfoNCE
from vantage.memory.remember import MeanKey
from vantage.negatives import Ring, Rule
from vantage.positives import FixedViews
from vantage.recipes.moco import moco_v2
from vantage.recipes.ring import annealed
from vantage.training.run import Run
from vantage.views import moco_v2_views

__all__ = ["jcl", "jcl_ring", "jcl_vanilla"]

_KEYS, _TEMPERATURE = (1, 2, 3, 4, 5), 0.2


def jcl(size: int = 224) -> Run:
    """MoCo v2 with infinitely many positives.

    JCL (Cai et al., arXiv 2009.14776), for its Table 1: MoCo v2 with five keys an image, τ .2, λ 4.

    The queue holds means of keys, not normalized. The paper's batch of 512 has learning rate .06, which is this one by
    the linear rule. The release has four keys (`k_crops 5` counts the query), replace(branch, keys=(1, 2, 3, 4),
    pool=(1, 2, 3, 4)), and λ 2 reached in equal steps over the epochs: JCL(strength=ByEpoch(Linear(2 / E, 2, E − 1))).
    Keys are shuffled image by image, so all keys of an image share batch statistics; the release shuffles them one by
    one. Up to 96 pixels: `moco_v2`'s small-image values but for τ, which stays .2 as in the paper's ablations with
    ResNet-18: the spread is weighted by λ / 2τ².
    """
    return _run("jcl", size, (), JCL(_TEMPERATURE))


def jcl_vanilla(size: int = 224) -> Run:
    """What JCL is compared with: five keys.

    What JCL is compared with (arXiv 2009.14776, Eq. 3 and Figure 1b): InfoNCE's mean over five keys; all else as
    `jcl`, the queue of means too."""
    return _run("jcl_vanilla", size, (), InfoNCE(_TEMPERATURE))


def jcl_ring(size: int = 224) -> Run:
    """JCL against Ring's negatives.

    JCL's estimator (arXiv 2009.14776) on Ring's annealed negatives (arXiv 2010.02037): a combination of no paper.
    """
    return _run("jcl_ring", size, (Ring(annealed()),), JCL(_TEMPERATURE))


def _run(name: str, size: int, negatives: tuple[Rule, ...], estimator: Estimator) -> Run:
    base = moco_v2(size)
    branch = Branch(base.branches[0].memory, FixedViews(), negatives, estimator, keys=_KEYS, remember=MeanKey())
    return replace(base, recipe=name, views=moco_v2_views(size, count=1 + len(_KEYS)), branches=(branch,))
