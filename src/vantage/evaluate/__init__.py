"""How good a frozen encoder is, by evaluation protocols that carry a name and a version.

To add a protocol, write one frozen dataclass in a file of its own and one line in `protocols/labeled.py`.
"""

from vantage.composition.public import make_public
from vantage.evaluate.judge import evaluate as evaluate
from vantage.evaluate.protocols import labeled
from vantage.evaluate.protocols.labeled import *  # noqa: F403
from vantage.evaluate.protocols.linear.heads import Heads as Heads
from vantage.evaluate.protocols.linear.logistic import Logistic as Logistic
from vantage.evaluate.protocols.linear.logistic import fit_logistic as fit_logistic
from vantage.evaluate.protocols.neighbors.picture import retrieval_picture as retrieval_picture
from vantage.evaluate.protocols.neighbors.retrieval import NearestRows as NearestRows
from vantage.evaluate.protocols.neighbors.retrieval import neighbors as neighbors
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation as Segmentation
from vantage.evaluate.protocols.svm.deepest import MarkedFeatures as MarkedFeatures
from vantage.evaluate.protocols.svm.deepest import deepest as deepest
from vantage.evaluate.protocols.svm.deepest import marked_features as marked_features
from vantage.evaluate.protocols.svm.samples import few_images as few_images
from vantage.evaluate.protocols.svm.svm import COSTS as COSTS
from vantage.evaluate.result import Outcome as Outcome
from vantage.evaluate.result import Result as Result
from vantage.evaluate.task import EvaluationProtocol as EvaluationProtocol
from vantage.evaluate.task import OwnTask as OwnTask
from vantage.evaluate.task import Task as Task
from vantage.evaluate.task import task_of as task_of
from vantage.measures.accuracy import Accuracy as Accuracy
from vantage.measures.accuracy import accuracy as accuracy
from vantage.measures.average_precision import average_precision as average_precision

PROTOCOLS: tuple[type[EvaluationProtocol], ...] = tuple(getattr(labeled, name) for name in labeled.__all__)
"""Every protocol that takes one labeled set. `Segmentation` takes images with masks; `DETECTORS` of
`vantage.evaluate.protocols.detection` take images with boxes."""

__all__ = ["PROTOCOLS", "COSTS", "Accuracy", "accuracy", "average_precision", *make_public(globals())]  # pyright: ignore
