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
    from vantage.estimators import NCE, InfoNCE
    from vantage.learner import Learner
    from vantage.loop import Outcome, resume, train
    from vantage.memory import Bank, InBatch, Queue
    from vantage.negatives import OtherImages, Sample
    from vantage.partition import log_partition
    from vantage.positives import OtherViews, Remembered
    from vantage.recipes import (
        RECIPES,
        instance_discrimination,
        instance_discrimination_full,
        instance_discrimination_nce,
        moco_v1,
        moco_v2,
        simclr,
    )
    from vantage.records import Keys, Scores
    from vantage.run import Data, Hardware, Monitoring, Run
    from vantage.trained import load, random_encoder, raw_pixels

__version__ = "0.1.0"

_HOME = {
    "Bank": "vantage.memory",
    "Branch": "vantage.branch",
    "Data": "vantage.run",
    "Hardware": "vantage.run",
    "InBatch": "vantage.memory",
    "InfoNCE": "vantage.estimators",
    "Keys": "vantage.records",
    "Learner": "vantage.learner",
    "Monitoring": "vantage.run",
    "NCE": "vantage.estimators",
    "OtherImages": "vantage.negatives",
    "OtherViews": "vantage.positives",
    "Outcome": "vantage.loop",
    "Queue": "vantage.memory",
    "RECIPES": "vantage.recipes",
    "Remembered": "vantage.positives",
    "Run": "vantage.run",
    "Sample": "vantage.negatives",
    "Scores": "vantage.records",
    "UserError": "vantage.errors",
    "embed": "vantage.embedding",
    "instance_discrimination": "vantage.recipes",
    "instance_discrimination_full": "vantage.recipes",
    "instance_discrimination_nce": "vantage.recipes",
    "load": "vantage.trained",
    "log_partition": "vantage.partition",
    "moco_v1": "vantage.recipes",
    "moco_v2": "vantage.recipes",
    "open_source": "vantage.data",
    "random_encoder": "vantage.trained",
    "raw_pixels": "vantage.trained",
    "resume": "vantage.loop",
    "simclr": "vantage.recipes",
    "train": "vantage.loop",
}

__all__ = [
    "Bank",
    "Branch",
    "Data",
    "Hardware",
    "InBatch",
    "InfoNCE",
    "Keys",
    "Learner",
    "Monitoring",
    "NCE",
    "OtherImages",
    "OtherViews",
    "Outcome",
    "Queue",
    "RECIPES",
    "Remembered",
    "Run",
    "Sample",
    "Scores",
    "UserError",
    "embed",
    "instance_discrimination",
    "instance_discrimination_full",
    "instance_discrimination_nce",
    "load",
    "log_partition",
    "moco_v1",
    "moco_v2",
    "open_source",
    "random_encoder",
    "raw_pixels",
    "resume",
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
