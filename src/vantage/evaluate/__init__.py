"""How good a frozen encoder is: nearest neighbours and linear classifiers, by protocols that carry name and version."""

from vantage.evaluate.accuracy import Accuracy, accuracy
from vantage.evaluate.average_precision import average_precision
from vantage.evaluate.deepest import MarkedFeatures, deepest, marked
from vantage.evaluate.evaluation import Result, evaluate, split
from vantage.evaluate.finetune import FineTune
from vantage.evaluate.finetune_chosen import FineTuneChosen
from vantage.evaluate.heads import Heads
from vantage.evaluate.knn import KNN, NearestNeighbour
from vantage.evaluate.labelled import held_out
from vantage.evaluate.linear import LinearCMC, LinearMoCo, LinearPyContrast
from vantage.evaluate.linear_depths import LinearRing
from vantage.evaluate.linear_multi import LinearMulti, LinearPlaces
from vantage.evaluate.logistic import LinearCached, Logistic, fit_logistic
from vantage.evaluate.lowshot import LowShot, LowShotChosen
from vantage.evaluate.lowshot_samples import few_images
from vantage.evaluate.masked_evaluation import evaluate_masked
from vantage.evaluate.outcome import EvaluationProtocol, Outcome
from vantage.evaluate.retrieval import Neighbours, Retrieval, neighbours
from vantage.evaluate.retrieval_picture import retrieval_picture
from vantage.evaluate.segmentation import Segmentation
from vantage.evaluate.svm import COSTS, SVM

PROTOCOLS = (
    KNN,
    NearestNeighbour,
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
"""Every protocol of one labelled set; `Segmentation` is of images with masks, `vantage.detect.DETECTORS` with boxes."""

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
    "NearestNeighbour",
    "Neighbours",
    "Outcome",
    "Result",
    "Retrieval",
    "Segmentation",
    "accuracy",
    "average_precision",
    "deepest",
    "evaluate",
    "evaluate_masked",
    "few_images",
    "fit_logistic",
    "held_out",
    "marked",
    "neighbours",
    "retrieval_picture",
    "split",
]
