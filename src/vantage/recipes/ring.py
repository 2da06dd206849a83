"""Ring: negatives that are similar to the query, without the most similar.

Backbone, crops, statistics, epochs and draws are those of the paper (Wu et al., arXiv 2010.02037). They are defined in
`vantage.recipes.cnce`, as are the methods that each of these is compared with.
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
    """Ring's annealing: from all keys to the most similar tenth over 100 epochs of 300, linearly by step."""
    return BetweenEpochs(Linear(1.0, 0.1, 100))


def ring_ir(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """IR with negatives from an annealed ring.

    IRing (Wu et al., arXiv 2010.02037), for its Table 1: `cnce_ir` whose 4,095 negatives are drawn from the ring of the
    whole bank, which holds last epoch's embeddings.

    From the first step on, the inner cut removes a tenth of the keys that are kept, as in the code; in
    `ring_ir_absolute` only w_ℓ changes, as in the text. The image's own row is ranked like any other, as in the code.
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
    """ring_ir with the keys that its inner cut drops as positives, joined by log-sum-exp.

    This is the release's `neighbor_views`. The paper's tables do not have it; their (+C_i) is `ring_ir_clusters`."""
    ring, positives = ring_ir(size, statistics), Neighbors(ring=Ring(annealing()))
    return variant_of(ring, "ring_ir_neighbors", positives=positives, estimator=SoftNeighbors(TEMPERATURE))


def ring_ir_released(size: int = 224) -> Run:
    """ring_ir as its release is configured: MLP head, 200 epochs, no annealing, resized crops.

    Code of arXiv 2010.02037: a learning rate that falls at epochs 136 and 166, a head of 512-512-128, random resized
    crops normalized with ImageNet's statistics on every set, and a ring of a tenth from the first step, since its
    configurations turn annealing off.
    """
    ring = variant_of(ring_ir_unannealed(size), "ring_ir_released")
    assert isinstance(ring.encoders, Shared)
    encoder = Encoder(ring.encoders.encoder.backbone, MLP(512, 128))
    decay = StepDecay(0.03, milestones=(136, 166))
    return replace(ring, views=npid_views(size, 1), encoders=Shared(encoder), learning_rate=decay, epochs=200)


def ball_ir(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_ir with the closest keys left in.

    IRing without the inner cut (arXiv 2010.02037, Table 2, "w_u = 100"): `ring_ir` with the closest keys left in.
    """
    return variant_of(cnce_ir(size, statistics), "ball_ir", negatives=(Ball(annealing()), _SAMPLE))


def ring_moco(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """MoCo with negatives from an annealed ring.

    MoCoRing (Wu et al., arXiv 2010.02037, Algorithm 1), for its Table 1: `cnce_moco` with the whole ring of its queue
    as negatives.

    Algorithm 1 leaves the positive out of the denominator; the equations and the code do not, and neither does this
    recipe. The other reading is `ring_moco_decoupled`.
    """
    return variant_of(cnce_moco(size, statistics), "ring_moco", negatives=(Ring(annealing()),))


def ring_moco_decoupled(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_moco as Algorithm 1 is written: the positive is not in the denominator (`Decoupled`)."""
    return variant_of(ring_moco(size, statistics), "ring_moco_decoupled", estimator=Decoupled(TEMPERATURE))


def ball_moco(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_moco with the closest keys left in.

    MoCoRing without the inner cut (arXiv 2010.02037, Table 2, there on IR only): `ring_moco` with the closest keys
    left in."""
    return variant_of(cnce_moco(size, statistics), "ball_moco", negatives=(Ball(annealing()),))


def ring_cmc(size: int = 224) -> Run:
    """CMC with negatives from an annealed ring.

    CMCRing (Wu et al., arXiv 2010.02037), for its Table 1: `cnce_cmc` whose 4,095 negatives in each direction are
    drawn from the ring of that direction's cross-modal similarities.

    The paper gives no formula for it, and its code was not released. This is Ring on each of CMC's two contrasts, with
    the same annealing.
    """
    return variant_of(cnce_cmc(size), "ring_cmc", negatives=(Ring(annealing()), _SAMPLE))


def ball_cmc(size: int = 224) -> Run:
    """ring_cmc with the closest keys left in.

    CMCRing without the inner cut (arXiv 2010.02037, Table 2, there on IR only): `ring_cmc` with the closest keys
    left in."""
    return variant_of(cnce_cmc(size), "ball_cmc", negatives=(Ball(annealing()), _SAMPLE))


def cave_ir(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """IR with negatives from the image's own cluster.

    IRCave (Wu et al., arXiv 2010.02037, Table 6): `cnce_ir` with negatives from the image's own cluster.

    The 4,095 negatives are drawn from the image's cluster in a k-means of the bank that is repeated every epoch. The
    image's own row, which the paper does not mention, is left out: among some 128 rows it would be drawn 32 times, and
    the loss could not fall below 3.5. No code was released. Our choices are a single clustering of at most 10,000
    clusters, of 128 images each on average, and that all images are one cluster in the first epoch (the first few of
    longer runs), which makes it instance discrimination. An image alone in its cluster has no negative, and its loss
    means nothing.
    """
    return variant_of(cnce_ir(size, statistics), "cave_ir", negatives=_CAVE, memory=_CAVES)


def cave_cmc(size: int = 224) -> Run:
    """CMC with negatives from the image's own cluster.

    CMCCave (arXiv 2010.02037, Table 6): `cave_ir` on CMC. Each direction uses the clusters of the bank that it is
    compared with.
    """
    return variant_of(cnce_cmc(size), "cave_cmc", negatives=_CAVE, memory=_CAVES)


def ring_ir_clusters(size: int = 224, statistics: Statistics = IMAGENET) -> Run:
    """ring_ir with the image's own cluster as positives.

    IRing (+C_i) (Wu et al., arXiv 2010.02037, Table 6): all rows of the image's cluster are positives, with negatives
    as in `ring_ir`.

    The positive becomes the mean of exp(s/τ) over the cluster, as in Eq. 5, and is part of the denominator. Clusters
    and their number are as in `local_aggregation`, but there is one clustering, from the second epoch on (a little
    later in longer runs). From clusters of more than 256 rows, 256 are drawn. The released `neighbor_views` is
    something else: `ring_ir_neighbors`.
    """
    return _with_mates(ring_ir(size, statistics), "ring_ir_clusters")


def ring_cmc_clusters(size: int = 224) -> Run:
    """ring_cmc with the image's own cluster as positives.

    CMCRing (+C_i) (arXiv 2010.02037, Table 6): `ring_ir_clusters` on CMC. Each direction uses the clusters of the bank
    that it is compared with."""
    return _with_mates(ring_cmc(size), "ring_cmc_clusters")


_CAVE = (OtherImages(), OwnCluster(), _SAMPLE)
_CAVES = ReclusteredBank(0.0, clusters=10_000, clusterings=1, start=Together(), images_per_cluster=128)


def _with_mates(base: Run, name: str) -> Run:
    """A base method on banks, with clusters as its positives."""
    memory = ReclusteredBank(0.0, clusters=30_000, clusterings=1)
    return variant_of(base, name, memory=memory, positives=ClusterMates(), estimator=PooledNCE(TEMPERATURE))
