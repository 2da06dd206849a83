"""Combinations: parts of several papers in one run."""

from dataclasses import replace

from vantage.branch import Branch
from vantage.memory import StoreOf
from vantage.negatives import OtherClusters, Ring, Rule, Subset
from vantage.recipes.infomin import with_jigsaw_head
from vantage.recipes.interclr import interclr_moco
from vantage.recipes.jcl import jcl_ring, with_keys
from vantage.recipes.ring import annealing
from vantage.schedules import Constant
from vantage.training.run import Run
from vantage.views import WithJigsaw, infomin_views, pycontrast_jigsaw

__all__ = ["everything", "interclr_ring", "jcl_interclr"]


def interclr_ring(size: int = 224) -> Run:
    """InterCLR with Ring's negatives.

    InterCLR on MoCo v2 (arXiv 2008.11702) with Ring's annealed negatives (arXiv 2010.02037): within an image the
    ring of the queue, between images the ring of the other clusters' rows (of a random subset if a set has more than
    163,840 images). A combination that no paper has."""
    base = interclr_moco(size)
    intra, inter = base.branches
    branches = (replace(intra, negatives=(Ring(annealing()),)), replace(inter, negatives=_RING_OF_OTHERS))
    return replace(base, recipe="interclr_ring", branches=branches)


def jcl_interclr(size: int = 224) -> Run:
    """JCL within images, InterCLR between them.

    JCL (arXiv 2009.14776) within an image, InterCLR (arXiv 2008.11702) between images, on MoCo v2's batch of 256; the
    clusters' bank keeps the first of the five keys. A combination that no paper has."""
    return _between(with_keys(size), "jcl_interclr", size, ())


def everything(size: int = 224) -> Run:
    """All four papers in one run.

    JCL's five keys (arXiv 2009.14776) against Ring's ring of the queue (arXiv 2010.02037), with an image and its jigsaw
    as queries on InfoMin's views (arXiv 2005.10243), and InterCLR's mates (arXiv 2008.11702) against the ring of the
    other clusters' rows.

    Weights: InterCLR's .75 within images, split equally between image and jigsaw as in InfoMin, and .25 between images.
    All other values are MoCo v2's.
    """
    base = _between(jcl_ring(size), "everything", size, _RING_OF_OTHERS)
    intra, inter = base.branches
    half = Constant(0.375)
    jigsaw = replace(intra, memory=StoreOf(0), query=6, weight=half)
    return replace(
        base,
        views=WithJigsaw(infomin_views(size, count=6), pycontrast_jigsaw(size)),
        encoders=replace(with_jigsaw_head(size), shuffle="keys"),
        branches=(replace(intra, weight=half), jigsaw, inter),
    )


_RING_OF_OTHERS: tuple[Rule, ...] = (Subset(163_840), OtherClusters(), Ring(annealing()))


def _between(base: Run, name: str, size: int, negatives: tuple[Rule, ...]) -> Run:
    """`base` within images at weight .75, and InterCLR's contrast between images, with `negatives` if given."""
    inter: Branch = interclr_moco(size).branches[1]
    inter = replace(inter, negatives=negatives or inter.negatives)
    branches = (replace(base.branches[0], weight=Constant(0.75)), inter)
    return replace(base, recipe=name, branches=branches)
