"""How good a frozen encoder is, by evaluation protocols that carry a name and a version."""

from vantage.evaluate.judge import evaluate
from vantage.evaluate.protocols.finetune.chosen import FineTuneChosen
from vantage.evaluate.protocols.finetune.finetune import FineTune
from vantage.evaluate.protocols.linear.depths import LinearRing
from vantage.evaluate.protocols.linear.heads import Heads
from vantage.evaluate.protocols.linear.logistic import LinearCached, Logistic, fit_logistic
from vantage.evaluate.protocols.linear.multi import LinearMulti, LinearPlaces
from vantage.evaluate.protocols.linear.pooled import LinearCMC, LinearMoCo, LinearPyContrast
from vantage.evaluate.protocols.neighbors.knn import KNN, NearestNeighbor
from vantage.evaluate.protocols.neighbors.picture import retrieval_picture
from vantage.evaluate.protocols.neighbors.retrieval import NearestRows, Retrieval, neighbors
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation
from vantage.evaluate.protocols.svm.deepest import MarkedFeatures, deepest, marked
from vantage.evaluate.protocols.svm.lowshot import LowShot, LowShotChosen
from vantage.evaluate.protocols.svm.samples import few_images
from vantage.evaluate.protocols.svm.svm import COSTS, SVM
from vantage.evaluate.result import Outcome, Result
from vantage.evaluate.task import EvaluationProtocol, OwnTask, Task, task_of
from vantage.measures.accuracy import Accuracy, accuracy
from vantage.measures.average_precision import average_precision

PROTOCOLS = (
    KNN,
    NearestNeighbor,
    Retrieval,
    LinearMoCo,
    LinearPyContrast,
    LinearCMC,
    LinearRing,
    LinearMulti,
    LinearPlaces,
    LinearCached,
    SVM,
    LowShot,
    LowShotChosen,
    FineTune,
    FineTuneChosen,
)
"""Every protocol that takes one labeled set. `Segmentation` takes images with masks; `DETECTORS` of
`vantage.evaluate.protocols.detection` take images with boxes."""

__all__ = [
    "PROTOCOLS",
    "COSTS",
    "KNN",
    "SVM",
    "Accuracy",
    "EvaluationProtocol",
    "FineTune",
    "FineTuneChosen",
    "Heads",
    "LinearCMC",
    "LinearCached",
    "LinearMoCo",
    "LinearMulti",
    "LinearPlaces",
    "LinearPyContrast",
    "LinearRing",
    "Logistic",
    "LowShot",
    "LowShotChosen",
    "MarkedFeatures",
    "NearestNeighbor",
    "NearestRows",
    "Outcome",
    "OwnTask",
    "Result",
    "Retrieval",
    "Segmentation",
    "Task",
    "accuracy",
    "average_precision",
    "deepest",
    "evaluate",
    "few_images",
    "fit_logistic",
    "marked",
    "neighbors",
    "retrieval_picture",
    "task_of",
]
