"""Vantage: contrastive learning of visual representations, in parts that compose.

>>> import vantage
>>> run = vantage.moco_v2(size=64).fit(images=13_000)
>>> run.branches[0].memory
Queue(length=1300)
"""

from vantage.branch import Branch
from vantage.errors import UserError
from vantage.estimators import NCE, InfoNCE
from vantage.learner import Learner
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

__version__ = "0.1.0"

__all__ = [
    "NCE",
    "RECIPES",
    "Bank",
    "Branch",
    "Data",
    "Hardware",
    "InBatch",
    "InfoNCE",
    "Keys",
    "Learner",
    "Monitoring",
    "OtherImages",
    "OtherViews",
    "Queue",
    "Remembered",
    "Run",
    "Sample",
    "Scores",
    "UserError",
    "instance_discrimination",
    "instance_discrimination_full",
    "instance_discrimination_nce",
    "log_partition",
    "moco_v1",
    "moco_v2",
    "simclr",
]
