"""HCL: SimCLR whose negatives count more the harder they are."""

from vantage.estimators import HCL
from vantage.recipes.debiased import with_estimator
from vantage.training.run import Run

__all__ = ["hcl"]


def hcl(size: int = 224) -> Run:
    """SimCLR with hard negatives weighted up.

    Contrastive learning with hard negative samples (Robinson et al., arXiv 2010.04592): SimCLR with `HCL`, τ .5, β 1
    and τ⁺ .1, for 400 epochs at batch 256, as the released code trains on STL-10.

    Optimizer, networks and views are as in `debiased`.
    """
    return with_estimator("hcl", size, HCL(0.5, hardness=1.0, prior=0.1), 400)
