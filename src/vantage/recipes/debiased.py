"""Debiased: SimCLR, corrected for negatives of the query's own class."""

from dataclasses import replace

from vantage.estimators import Debiased, TableEstimator
from vantage.recipes.simclr import simclr
from vantage.schedules import StepDecay
from vantage.training.optimizers import AdamW, NoParameters
from vantage.training.run import Run

__all__ = ["debiased", "with_estimator"]


def debiased(size: int = 224) -> Run:
    """SimCLR, corrected for false negatives.

    Debiased contrastive learning (Chuang et al., arXiv 2007.00224): SimCLR with `Debiased`, τ .5, τ⁺ .1, for 500 epochs
    at batch 256, as the released code trains on STL-10.

    The release uses Adam at a constant learning rate of .001 with weight decay 1e-6 of all parameters. Here it is
    AdamW, whose decay is separate from the gradient; at 1e-6 that makes no visible difference. The release trains a
    ResNet-50 on images of 32 pixels; networks and views here are those of `simclr` at each size.
    """
    return with_estimator("debiased", size, Debiased(0.5, 0.1), 500)


def with_estimator(recipe: str, size: int, estimator: Debiased | TableEstimator, epochs: int) -> Run:
    """SimCLR with another estimator, and with the optimizer of debiased learning and its successors."""
    base = simclr(size)
    return replace(
        base,
        recipe=recipe,
        branches=tuple(replace(branch, estimator=estimator) for branch in base.branches),
        optimizer=AdamW(weight_decay=1e-6, exclude=NoParameters()),
        learning_rate=StepDecay(0.001, milestones=()),
        epochs=epochs,
    )
