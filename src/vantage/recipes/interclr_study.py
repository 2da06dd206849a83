"""InterCLR: the settings of its studies.

Xie et al., arXiv 2008.11702, section 5.2 and appendix A: `interclr` for 100 epochs with 4,096 negatives and λ = .5,
one setting changed at a time. Labels are studied with random negatives and no margin, samplings with online labels and
no margin, margins with online labels and semi-hard negatives. The weight λ (appendix C) is studied for 200 epochs with
4,096 random negatives and no margin.

Here each query draws its own negatives between images, exactly as in the paper, so that samplings differ in nothing
else.
"""

from dataclasses import replace

from vantage.estimators import InfoNCE
from vantage.memory import ClusteredBank, Memory, ReclusteredBank
from vantage.negatives import Count, Distinct, Easiest, Hardest, OtherClusters, OtherImages, Rule, Sample
from vantage.recipes.interclr import interclr
from vantage.schedules import Constant
from vantage.training.run import Run

__all__ = [
    "interclr_hard",
    "interclr_inter_margin",
    "interclr_intra_margin",
    "interclr_intra_only",
    "interclr_offline",
    "interclr_random",
    "interclr_semi_easy",
    "interclr_semi_hard",
    "interclr_weighted",
]

_COUNT = 4_096
_RANDOM = (OtherClusters(), Sample(_COUNT))
_HARD = (OtherClusters(), Hardest(Count(_COUNT)))
_SEMI_HARD = (OtherClusters(), Hardest(), Distinct(_COUNT))
_SEMI_EASY = (OtherClusters(), Easiest(), Distinct(_COUNT))
_ONLINE = ClusteredBank(0.5, first=0)
_OFFLINE = ReclusteredBank(0.5, clusters=10_000, clusterings=1, first=0, images_per_cluster=128)


def interclr_random(size: int = 224) -> Run:
    """Random negatives and online labels (Figures 6a and 6b)."""
    return _study("interclr_random", size, _RANDOM)


def interclr_offline(size: int = 224) -> Run:
    """Labels made anew after every epoch, with the same first clusters as online ones; random negatives (Figure 6a).

    The paper does not say how often offline labels are made."""
    return _study("interclr_offline", size, _RANDOM, memory=_OFFLINE)


def interclr_hard(size: int = 224) -> Run:
    """The nearest 4,096 rows of other clusters as negatives (Figure 6b)."""
    return _study("interclr_hard", size, _HARD)


def interclr_semi_hard(size: int = 224) -> Run:
    """Negatives drawn from the nearest tenth of other clusters' rows (Figure 6b)."""
    return _study("interclr_semi_hard", size, _SEMI_HARD)


def interclr_semi_easy(size: int = 224) -> Run:
    """Negatives drawn from the farthest tenth of other clusters' rows (Figure 6b)."""
    return _study("interclr_semi_easy", size, _SEMI_EASY)


def interclr_intra_margin(size: int = 224) -> Run:
    """A margin of .35 within images, none between them, semi-hard negatives: the best of Figure 6c for that branch."""
    return _study("interclr_intra_margin", size, _SEMI_HARD, intra=0.35)


def interclr_inter_margin(size: int = 224) -> Run:
    """A margin of -.5 between images, none within them, semi-hard negatives (Figure 6c)."""
    return _study("interclr_inter_margin", size, _SEMI_HARD, inter=-0.5)


def interclr_weighted(size: int = 224) -> Run:
    """λ = .75 in the study of weights (Figure 8, Table 4)."""
    return replace(_study("interclr_weighted", size, _RANDOM, weight=0.75), epochs=200)


def interclr_intra_only(size: int = 224) -> Run:
    """λ = 1: no contrast between images. `interclr_weighted` is compared with it (Figure 8, Table 4)."""
    run = replace(_study("interclr_intra_only", size, _RANDOM, weight=1.0), epochs=200)
    return replace(run, branches=run.branches[:1])


def _study(
    name: str,
    size: int,
    negatives: tuple[Rule, ...],
    memory: Memory = _ONLINE,
    intra: float = 0.0,
    inter: float = 0.0,
    weight: float = 0.5,
) -> Run:
    """`interclr` with these negatives between images, memory, margins and λ."""
    base = interclr(size)
    within, between = base.branches
    within = replace(
        within,
        memory=memory,
        negatives=(Sample(_COUNT), OtherImages()),
        estimator=InfoNCE(0.1, margin=intra),
        weight=Constant(weight),
    )
    between = replace(between, negatives=negatives, estimator=InfoNCE(0.1, margin=inter), weight=Constant(1.0 - weight))
    return replace(base, recipe=name, branches=(within, between), epochs=100)
