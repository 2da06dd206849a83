"""Vantage: contrastive learning of visual representations, in parts that compose.

>>> import vantage
>>> run = vantage.moco_v2(size=64).fit(images=13_000)
>>> run.branches[0].memory
Queue(length=1300)

In a handful of calls, from images to features:

    source = vantage.open_source("photos")
    run = dataclasses.replace(vantage.moco_v2(size=64).fit(len(source)), data=vantage.Data("photos"))
    vantage.train(run, "runs/first")
    features = vantage.embed(vantage.load(Path("runs/first")), source)

Names are imported when they are first asked for, so that `vantage --help` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vantage.branch import Branch
    from vantage.data import open_source
    from vantage.encoding import embed
    from vantage.errors import UserError
    from vantage.estimators import (
        JCL,
        NCE,
        ArcNCE,
        Decoupled,
        InfoNCE,
        LocalAggregation,
        MeanAggregation,
        MeanNeighbors,
        PooledNCE,
        SoftNeighbors,
    )
    from vantage.frozen.encoder import load, random_encoder, raw_pixels
    from vantage.learner import Learner
    from vantage.memory import Bank, ClusteredBank, InBatch, Queue, ReclusteredBank, StoreOf
    from vantage.memory.remember import EachKey, MeanKey, UnitMeanKey
    from vantage.negatives import (
        AbsoluteRing,
        Ball,
        Count,
        Distinct,
        Easiest,
        Hardest,
        OtherClusters,
        OtherImages,
        OwnCluster,
        Ring,
        Sample,
        Share,
        Subset,
    )
    from vantage.partition import log_partition
    from vantage.positives import (
        ClusterMate,
        ClusterMates,
        FixedViews,
        NearMates,
        Neighbors,
        OtherMate,
        OtherViews,
        Remembered,
    )
    from vantage.recipes import (
        RECIPES,
        ball_cmc,
        ball_ir,
        ball_moco,
        cave_cmc,
        cave_ir,
        cmc,
        cmc_softmax,
        everything,
        infomin,
        infomin_linear,
        instance_discrimination,
        instance_discrimination_full,
        instance_discrimination_nce,
        interclr,
        interclr_moco,
        interclr_ring,
        jcl,
        jcl_interclr,
        jcl_ring,
        jcl_vanilla,
        local_aggregation,
        moco_v1,
        moco_v2,
        moco_v2_multi_crop,
        pirl,
        ring_cmc,
        ring_cmc_clusters,
        ring_ir,
        ring_ir_clusters,
        ring_moco,
        simclr,
        with_small_crops,
    )
    from vantage.records import Keys, Scores
    from vantage.training.loop import TrainingOutcome, resume, train
    from vantage.training.run import Data, Hardware, Monitoring, Run

__version__ = "0.1.0"

_HOMES = {
    "vantage.branch": "Branch",
    "vantage.data": "open_source",
    "vantage.encoding": "embed",
    "vantage.errors": "UserError",
    "vantage.estimators": """
        ArcNCE Decoupled InfoNCE JCL LocalAggregation MeanAggregation MeanNeighbors NCE PooledNCE
        SoftNeighbors
    """,
    "vantage.learner": "Learner",
    "vantage.training.loop": "Outcome resume train",
    "vantage.memory": "Bank ClusteredBank InBatch Queue ReclusteredBank StoreOf",
    "vantage.negatives": """
        AbsoluteRing Ball Count Distinct Easiest Hardest OtherClusters OtherImages OwnCluster Ring Sample Share Subset
    """,
    "vantage.partition": "log_partition",
    "vantage.positives": "ClusterMate ClusterMates FixedViews NearMates Neighbors OtherMate OtherViews Remembered",
    "vantage.recipes": """
        RECIPES ball_cmc ball_ir ball_moco cave_cmc cave_ir cmc cmc_softmax everything infomin infomin_linear
        instance_discrimination instance_discrimination_full instance_discrimination_nce
        interclr interclr_moco interclr_ring jcl jcl_interclr jcl_ring jcl_vanilla local_aggregation moco_v1 moco_v2
        moco_v2_multi_crop pirl ring_cmc ring_cmc_clusters ring_ir ring_ir_clusters ring_moco simclr with_small_crops
    """,
    "vantage.records": "Keys Scores",
    "vantage.memory.remember": "EachKey MeanKey UnitMeanKey",
    "vantage.training.run": "Data Hardware Monitoring Run",
    "vantage.frozen.encoder": "load random_encoder raw_pixels",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}

__all__ = [
    "AbsoluteRing",
    "ArcNCE",
    "Ball",
    "Bank",
    "Branch",
    "ClusterMate",
    "ClusterMates",
    "ClusteredBank",
    "Count",
    "Data",
    "Decoupled",
    "Distinct",
    "EachKey",
    "Easiest",
    "FixedViews",
    "Hardest",
    "Hardware",
    "InBatch",
    "InfoNCE",
    "JCL",
    "Keys",
    "Learner",
    "LocalAggregation",
    "MeanAggregation",
    "MeanKey",
    "MeanNeighbors",
    "Monitoring",
    "NCE",
    "NearMates",
    "Neighbors",
    "OtherClusters",
    "OtherImages",
    "OtherMate",
    "OtherViews",
    "TrainingOutcome",
    "OwnCluster",
    "PooledNCE",
    "Queue",
    "RECIPES",
    "ReclusteredBank",
    "Remembered",
    "Ring",
    "Run",
    "Sample",
    "Scores",
    "Share",
    "SoftNeighbors",
    "StoreOf",
    "Subset",
    "UnitMeanKey",
    "UserError",
    "ball_cmc",
    "ball_ir",
    "ball_moco",
    "cave_cmc",
    "cave_ir",
    "cmc",
    "cmc_softmax",
    "embed",
    "everything",
    "infomin",
    "infomin_linear",
    "instance_discrimination",
    "instance_discrimination_full",
    "instance_discrimination_nce",
    "interclr",
    "interclr_moco",
    "interclr_ring",
    "jcl",
    "jcl_interclr",
    "jcl_ring",
    "jcl_vanilla",
    "load",
    "local_aggregation",
    "log_partition",
    "moco_v1",
    "moco_v2",
    "moco_v2_multi_crop",
    "open_source",
    "pirl",
    "random_encoder",
    "raw_pixels",
    "resume",
    "ring_cmc",
    "ring_cmc_clusters",
    "ring_ir",
    "ring_ir_clusters",
    "ring_moco",
    "simclr",
    "train",
    "with_small_crops",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vantage' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
