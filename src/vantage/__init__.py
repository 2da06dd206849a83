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
    from vantage.embedding import embed
    from vantage.errors import UserError
    from vantage.estimators import (
        JCL,
        NCE,
        ArcNCE,
        Decoupled,
        InfoNCE,
        LocalAggregation,
        MeanNeighbours,
        SoftNeighbours,
    )
    from vantage.learner import Learner
    from vantage.loop import Outcome, resume, train
    from vantage.memory import Bank, ClusteredBank, InBatch, Queue, ReclusteredBank
    from vantage.negatives import (
        AbsoluteRing,
        Ball,
        Count,
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
    from vantage.positives import ClusterMate, ClusterMates, NearMates, Neighbours, OtherViews, Remembered
    from vantage.recipes import (
        RECIPES,
        ball_ir,
        ball_moco,
        instance_discrimination,
        instance_discrimination_full,
        instance_discrimination_nce,
        interclr,
        interclr_moco,
        jcl,
        jcl_ring,
        jcl_vanilla,
        local_aggregation,
        moco_v1,
        moco_v2,
        pirl,
        ring_ir,
        ring_moco,
        simclr,
    )
    from vantage.records import Keys, Scores
    from vantage.remember import EachKey, MeanKey, UnitMeanKey
    from vantage.run import Data, Hardware, Monitoring, Run
    from vantage.trained import load, random_encoder, raw_pixels

__version__ = "0.1.0"

_HOME = {
    "AbsoluteRing": "vantage.negatives",
    "ArcNCE": "vantage.estimators",
    "Ball": "vantage.negatives",
    "Bank": "vantage.memory",
    "Branch": "vantage.branch",
    "ClusterMate": "vantage.positives",
    "ClusterMates": "vantage.positives",
    "ClusteredBank": "vantage.memory",
    "Count": "vantage.negatives",
    "Data": "vantage.run",
    "Decoupled": "vantage.estimators",
    "EachKey": "vantage.remember",
    "Easiest": "vantage.negatives",
    "Hardest": "vantage.negatives",
    "Hardware": "vantage.run",
    "InBatch": "vantage.memory",
    "InfoNCE": "vantage.estimators",
    "JCL": "vantage.estimators",
    "Keys": "vantage.records",
    "Learner": "vantage.learner",
    "LocalAggregation": "vantage.estimators",
    "MeanKey": "vantage.remember",
    "MeanNeighbours": "vantage.estimators",
    "Monitoring": "vantage.run",
    "NCE": "vantage.estimators",
    "NearMates": "vantage.positives",
    "Neighbours": "vantage.positives",
    "OtherClusters": "vantage.negatives",
    "OtherImages": "vantage.negatives",
    "OtherViews": "vantage.positives",
    "Outcome": "vantage.loop",
    "OwnCluster": "vantage.negatives",
    "Queue": "vantage.memory",
    "RECIPES": "vantage.recipes",
    "ReclusteredBank": "vantage.memory",
    "Remembered": "vantage.positives",
    "Ring": "vantage.negatives",
    "Run": "vantage.run",
    "Sample": "vantage.negatives",
    "Scores": "vantage.records",
    "Share": "vantage.negatives",
    "SoftNeighbours": "vantage.estimators",
    "Subset": "vantage.negatives",
    "UnitMeanKey": "vantage.remember",
    "UserError": "vantage.errors",
    "ball_ir": "vantage.recipes",
    "ball_moco": "vantage.recipes",
    "embed": "vantage.embedding",
    "instance_discrimination": "vantage.recipes",
    "instance_discrimination_full": "vantage.recipes",
    "instance_discrimination_nce": "vantage.recipes",
    "interclr": "vantage.recipes",
    "interclr_moco": "vantage.recipes",
    "jcl": "vantage.recipes",
    "jcl_ring": "vantage.recipes",
    "jcl_vanilla": "vantage.recipes",
    "load": "vantage.trained",
    "local_aggregation": "vantage.recipes",
    "log_partition": "vantage.partition",
    "moco_v1": "vantage.recipes",
    "moco_v2": "vantage.recipes",
    "open_source": "vantage.data",
    "pirl": "vantage.recipes",
    "random_encoder": "vantage.trained",
    "raw_pixels": "vantage.trained",
    "resume": "vantage.loop",
    "ring_ir": "vantage.recipes",
    "ring_moco": "vantage.recipes",
    "simclr": "vantage.recipes",
    "train": "vantage.loop",
}

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
    "EachKey",
    "Easiest",
    "Hardest",
    "Hardware",
    "InBatch",
    "InfoNCE",
    "JCL",
    "Keys",
    "Learner",
    "LocalAggregation",
    "MeanKey",
    "MeanNeighbours",
    "Monitoring",
    "NCE",
    "NearMates",
    "Neighbours",
    "OtherClusters",
    "OtherImages",
    "OtherViews",
    "Outcome",
    "OwnCluster",
    "Queue",
    "RECIPES",
    "ReclusteredBank",
    "Remembered",
    "Ring",
    "Run",
    "Sample",
    "Scores",
    "Share",
    "SoftNeighbours",
    "Subset",
    "UnitMeanKey",
    "UserError",
    "ball_ir",
    "ball_moco",
    "embed",
    "instance_discrimination",
    "instance_discrimination_full",
    "instance_discrimination_nce",
    "interclr",
    "interclr_moco",
    "jcl",
    "jcl_ring",
    "jcl_vanilla",
    "load",
    "local_aggregation",
    "log_partition",
    "moco_v1",
    "moco_v2",
    "open_source",
    "pirl",
    "random_encoder",
    "raw_pixels",
    "resume",
    "ring_ir",
    "ring_moco",
    "simclr",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'vantage' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
