"""Ring: negatives that are similar to the query, without the most similar.

Backbone, crops, statistics, epochs and draws are those of the paper (Wu et al., arXiv 2010.02037), in
`vantage.recipes.cnce`, where the methods stand that each of these is compared with.
"""

from dataclasses import replace

from vantage.encoders import MLP, Encoder, Shared
from vantage.estimators import Decoupled, PooledNCE, SoftNeighbors
from vantage.memory import ReclusteredBank, Together
from vantage.negatives import AbsoluteRing, Ball, OtherImages, OwnCluster, Ring, Sample
from vantage.positives import ClusterMates, Neighbors
from vantage.recipes.cnce import DRAWS, TEMPERATURE, cnce_cmc, cnce_ir, cnce_moco, variant_of
from vantage.schedules import BetweenEpochs, Linear, Schedule, StepDecay
from vantage.training.run import Run
from vantage.views import IMAGENET, Statistics, npid_views

__all__ = [
    "annealing",
    "ball_cmc",
    "ball_ir",
    "ball_moco",
    "cave_cmc",
    "cave_ir",
    "ring_cmc",
    "ring_cmc_clusters",
    "ring_ir",
    "ring_ir_absolute",
    "ring_ir_clusters",
    "ring_ir_neighbors",
    "ring_ir_released",
    "ring_ir_unannealed",
    "ring_moco",
    "ring_moco_decoupled",
]

_SAMPLE = Sample(DRAWS)


def annealing() -> Schedule:
    """Ring's annealing: from all keys to the most similar tenth over 100 epochs of 300, in a straight line by step."""
    return BetweenEpochs(Linear(1.0, 0.1, 100))


def ring_ir(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """IR, negatives from an annealed ring.

    IRing (Wu et al., arXiv 2010.02037), for its Table 1: `cnce_ir` whose 4,095 negatives are drawn from the ring of the
    whole bank, which holds last epoch's embeddings.

    The inner cut is a tenth of what is kept from the first step on, as in the code; in `ring_ir_absolute` w_ℓ alone
    moves, as in the text. The own row is ranked like any other, as in the code.
    """
    return variant_of(cnce_ir(size, statistics), "ring_ir", negatives=(Ring(annealing()), _SAMPLE))


def ring_ir_unannealed(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_ir from the narrow ring at once (Table 2, "No Anneal")."""
    return variant_of(cnce_ir(size, statistics), "ring_ir_unannealed", negatives=(Ring(), _SAMPLE))


def ring_ir_absolute(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_ir by the paper's text: w_ℓ anneals from 0 to 90, w_u stays at 99 (section 4)."""
    negatives = (AbsoluteRing(annealing()), _SAMPLE)
    return variant_of(cnce_ir(size, statistics), "ring_ir_absolute", negatives=negatives)


def ring_ir_neighbors(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_ir, what the inner cut drops as positives: `neighbor_views` of the release, joined by log-sum-exp.

    No row of the paper; `ring_ir_clusters` is its (+C_i)."""
    ring, positives = ring_ir(size, statistics), Neighbors(ring=Ring(annealing()))
    return variant_of(ring, "ring_ir_neighbors", positives=positives, estimator=SoftNeighbors(TEMPERATURE))


def ring_ir_released(size: int = 224) -> Run:
    """ring_ir as its release is configured: MLP head, 200 epochs, no annealing, resized crops.

    Code of arXiv 2010.02037: falls at epochs 136 and 166, a head of 512-512-128, random resized crops normalized with
    ImageNet's statistics on every set, and a ring of a tenth from the first step, since its configurations turn
    annealing off.
    """
    ring = variant_of(ring_ir_unannealed(size), "ring_ir_released")
    assert isinstance(ring.encoders, Shared)
    encoder = Encoder(ring.encoders.encoder.backbone, MLP(512, 128))
    course = StepDecay(0.03, milestones=(136, 166))
    return replace(ring, views=npid_views(size, 1), encoders=Shared(encoder), learning_rate=course, epochs=200)


def ball_ir(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_ir, the closest keys left in.

    IRing without the inner cut (arXiv 2010.02037, Table 2, "w_u = 100"): `ring_ir` with the closest keys left in.
    """
    return variant_of(cnce_ir(size, statistics), "ball_ir", negatives=(Ball(annealing()), _SAMPLE))


def ring_moco(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """MoCo, negatives from an annealed ring.

    MoCoRing (Wu et al., arXiv 2010.02037, Algorithm 1), for its Table 1: `cnce_moco` on all of the ring of its queue.

    Algorithm 1 leaves the positive out of the denominator, the equations and the code do not, nor is it here: the
    other reading is `ring_moco_decoupled`.
    """
    return variant_of(cnce_moco(size, statistics), "ring_moco", negatives=(Ring(annealing()),))


def ring_moco_decoupled(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_moco as Algorithm 1 is written: the positive is not in the denominator (`Decoupled`)."""
    return variant_of(ring_moco(size, statistics), "ring_moco_decoupled", estimator=Decoupled(TEMPERATURE))


def ball_moco(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_moco, the closest keys left in.

    MoCoRing without the inner cut (arXiv 2010.02037, Table 2, there on IR only): `ring_moco` with the closest keys
    left in."""
    return variant_of(cnce_moco(size, statistics), "ball_moco", negatives=(Ball(annealing()),))


def ring_cmc(size: int = 224) -> Run:
    """CMC, negatives from an annealed ring.

    CMCRing (Wu et al., arXiv 2010.02037), for its Table 1: `cnce_cmc` whose 4,095 negatives of either direction are
    drawn from the ring of its own cross-modal similarities.

    The paper gives no formula for it and released no code; this is Ring on each of CMC's two contrasts, the annealing
    shared.
    """
    return variant_of(cnce_cmc(size), "ring_cmc", negatives=(Ring(annealing()), _SAMPLE))


def ball_cmc(size: int = 224) -> Run:
    """ring_cmc, the closest keys left in.

    CMCRing without the inner cut (arXiv 2010.02037, Table 2, there on IR only): `ring_cmc` with the closest keys
    left in."""
    return variant_of(cnce_cmc(size), "ball_cmc", negatives=(Ball(annealing()), _SAMPLE))


def cave_ir(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """IR, negatives from the own cluster.

    IRCave (Wu et al., arXiv 2010.02037, Table 6): `cnce_ir`, negatives from the image's own cluster.

    4,095 draws from the rows that a k-means of the bank, made anew every epoch, puts beside the image. The own row, of
    which the paper says nothing, is left out: of some 128 rows it would be drawn 32 times, and the loss could not fall
    below 3.5. No code was released: one clustering of at most 10,000 clusters, 128 images in each on average, is our
    choice, and so is that all images are one cluster in the first epoch (the first few of longer runs), which makes
    it instance discrimination. An image alone in its cluster has no negative, and its loss says nothing.
    """
    return variant_of(cnce_ir(size, statistics), "cave_ir", negatives=_CAVE, memory=_CAVES)


def cave_cmc(size: int = 224) -> Run:
    """CMC, negatives from the own cluster.

    CMCCave (arXiv 2010.02037, Table 6): `cave_ir` on CMC, each direction in the clusters of the bank that it is
    compared with.
    """
    return variant_of(cnce_cmc(size), "cave_cmc", negatives=_CAVE, memory=_CAVES)


def ring_ir_clusters(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_ir, the own cluster as positives.

    IRing (+C_i) (Wu et al., arXiv 2010.02037, Table 6): all of the image's cluster are positives, negatives as in
    `ring_ir`.

    The positive becomes the mean of exp(s/τ) over the cluster, as in Eq. 5, and stands in the denominator. Clusters
    and their number as in `local_aggregation`, but one clustering, from the second epoch on or a little later in
    longer runs; of a larger cluster 256 rows are drawn. The released `neighbor_views` is something else:
    `ring_ir_neighbors`.
    """
    return _with_mates(ring_ir(size, statistics), "ring_ir_clusters")


def ring_cmc_clusters(size: int = 224) -> Run:
    """ring_cmc, the own cluster as positives.

    CMCRing (+C_i) (arXiv 2010.02037, Table 6): `ring_ir_clusters` on CMC, each direction in the clusters of the bank
    that it is compared with."""
    return _with_mates(ring_cmc(size), "ring_cmc_clusters")


_CAVE = (OtherImages(), OwnCluster(), _SAMPLE)
_CAVES = ReclusteredBank(0.0, clusters=10_000, clusterings=1, start=Together(), images_per_cluster=128)


def _with_mates(base: Run, name: str) -> Run:
    """A base on banks, whose positives become clusters."""
    memory = ReclusteredBank(0.0, clusters=30_000, clusterings=1)
    return variant_of(base, name, memory=memory, positives=ClusterMates(), estimator=PooledNCE(TEMPERATURE))
