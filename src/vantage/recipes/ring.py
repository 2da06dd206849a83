"""Ring: negatives that are similar to the query, without the most similar."""

from dataclasses import replace

from vantage.estimators import InfoNCE, PooledNCE
from vantage.memory import Memory, ReclusteredBank, Together
from vantage.negatives import Ball, OwnCluster, Ring, Rule, Sample
from vantage.positives import ClusterMates
from vantage.recipes.cmc import cmc_softmax
from vantage.recipes.instance_discrimination import instance_discrimination
from vantage.recipes.moco import moco_v1
from vantage.schedules import BetweenEpochs, Linear, Schedule, StepDecay
from vantage.training.run import Run

__all__ = [
    "annealed",
    "ball_cmc",
    "ball_ir",
    "ball_moco",
    "cave_cmc",
    "cave_ir",
    "ring_cmc",
    "ring_cmc_clusters",
    "ring_ir",
    "ring_ir_clusters",
    "ring_moco",
]


def annealed() -> Schedule:
    """Ring's annealing: from all keys to the most similar tenth over 100 epochs of 300, in a straight line by step."""
    return BetweenEpochs(Linear(1.0, 0.1, 100))


def ring_ir(size: int = 224) -> Run:
    """IR, negatives from an annealed ring.

    IRing (Wu et al., arXiv 2010.02037), for its Table 1: instance discrimination whose 4,095 negatives are drawn
    from the ring of the whole bank, τ .07, 300 epochs, steps at 200 and 250.

    The inner cut is a tenth of what is kept from the first step on, as in the code; the paper's text lets w_ℓ alone
    move. The own row is ranked like any other, as in the code. The bank keeps momentum .5 as the paper says; the code
    replaces rows (0). Bases as in `instance_discrimination`, views and batch for small images too.
    """
    return _bank("ring_ir", size, Ring(annealed()))


def ball_ir(size: int = 224) -> Run:
    """ring_ir, the closest keys left in.

    IRing without the inner cut (arXiv 2010.02037, Table 2, "w_u = 100"): `ring_ir` with the closest keys left in.
    """
    return _bank("ball_ir", size, Ball(annealed()))


def ring_moco(size: int = 224) -> Run:
    """MoCo, negatives from an annealed ring.

    MoCoRing (Wu et al., arXiv 2010.02037, Algorithm 1), for its Table 1: MoCo on all of the ring of its queue,
    τ .07, 300 epochs, steps at 200 and 250.

    Algorithm 1 leaves the positive out of the denominator; the equations, the code and this recipe keep it. The other
    reading is the estimator `Decoupled`. Base as in `moco_v1`: its linear head, views and queue.
    """
    return _queue("ring_moco", size, Ring(annealed()))


def ball_moco(size: int = 224) -> Run:
    """ring_moco, the closest keys left in.

    MoCoRing without the inner cut (arXiv 2010.02037, Table 2, there on IR only): `ring_moco` with the closest keys
    left in."""
    return _queue("ball_moco", size, Ball(annealed()))


def ring_cmc(size: int = 224) -> Run:
    """CMC, negatives from an annealed ring.

    CMCRing (Wu et al., arXiv 2010.02037), for its Table 1: CMC by cross-entropy whose 4,095 negatives of either
    direction are drawn from the ring of its own cross-modal similarities, τ .07, 300 epochs, batch 128.

    The paper gives no formula for it and released no code; this is Ring on each of CMC's two contrasts, the annealing
    shared. Base as in `cmc_softmax`.
    """
    return _rung(cmc_softmax(size), "ring_cmc", (Ring(annealed()), Sample(4_095)))


def ball_cmc(size: int = 224) -> Run:
    """ring_cmc, the closest keys left in.

    CMCRing without the inner cut (arXiv 2010.02037, Table 2, there on IR only): `ring_cmc` with the closest keys
    left in."""
    return _rung(cmc_softmax(size), "ball_cmc", (Ball(annealed()), Sample(4_095)))


def cave_ir(size: int = 224) -> Run:
    """IR, negatives from the own cluster.

    IRCave (Wu et al., arXiv 2010.02037, Table 6): negatives from the image's own cluster.

    4,095 draws from the rows that share the image's cluster in a k-means of the bank, repeated every epoch; the own row
    may be drawn. No code was released: one clustering of at most 10,000 clusters, 128 images in each on average, is our
    choice, and so is that all images are one cluster in the first epoch (the first few of longer runs), which makes it
    instance discrimination.
    """
    return _rung(instance_discrimination(size), "cave_ir", (OwnCluster(), Sample(4_095)), _CAVES)


def cave_cmc(size: int = 224) -> Run:
    """CMC, negatives from the own cluster.

    CMCCave (arXiv 2010.02037, Table 6): `cave_ir` on CMC, each direction in the clusters of the bank that it is
    compared with.
    """
    return _rung(cmc_softmax(size), "cave_cmc", (OwnCluster(), Sample(4_095)), _CAVES)


def ring_ir_clusters(size: int = 224) -> Run:
    """ring_ir, the own cluster as positives.

    IRing (+C_i) (Wu et al., arXiv 2010.02037, Table 6): all of the image's cluster are positives, negatives as in
    `ring_ir`.

    The positive becomes the mean of exp(s/τ) over the cluster, as in Eq. 5, and stands in the denominator. Clusters
    and their number as in `local_aggregation`, but one clustering, from the second epoch on or a little later in
    longer runs; of a larger cluster 256 rows are drawn. The released `neighbor_views` is something else:
    `Neighbors` with `SoftNeighbors`.
    """
    return _with_mates(ring_ir(size), "ring_ir_clusters")


def ring_cmc_clusters(size: int = 224) -> Run:
    """ring_cmc, the own cluster as positives.

    CMCRing (+C_i) (arXiv 2010.02037, Table 6): `ring_ir_clusters` on CMC, each direction in the clusters of the bank
    that it is compared with."""
    return _with_mates(ring_cmc(size), "ring_cmc_clusters")


_CAVES = ReclusteredBank(0.5, clusters=10_000, clusterings=1, start=Together(), images_per_cluster=128)


def _bank(name: str, size: int, rule: Rule) -> Run:
    return _rung(instance_discrimination(size), name, (rule, Sample(4_095)))


def _queue(name: str, size: int, rule: Rule) -> Run:
    return _rung(moco_v1(size), name, (rule,))


def _rung(base: Run, name: str, negatives: tuple[Rule, ...], memory: Memory | None = None) -> Run:
    """A base with other negatives, and the paper's τ, epochs and steps."""
    branches = tuple(
        replace(branch, memory=memory or branch.memory, negatives=negatives, estimator=InfoNCE(0.07))
        for branch in base.branches
    )
    return replace(
        base, recipe=name, branches=branches, learning_rate=StepDecay(0.03, milestones=(200, 250)), epochs=300
    )


def _with_mates(base: Run, name: str) -> Run:
    """A base on banks, whose positives become clusters."""
    memory = ReclusteredBank(0.5, clusters=30_000, clusterings=1)
    branches = tuple(
        replace(branch, memory=memory, positives=ClusterMates(), estimator=PooledNCE(0.07)) for branch in base.branches
    )
    return replace(base, recipe=name, branches=branches)
