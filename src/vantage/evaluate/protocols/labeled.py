"""Every protocol that takes one labeled set, one line each, in the order of `vantage evaluate --help`."""
# isort: skip_file

from vantage.composition.public import make_public
from vantage.evaluate.protocols.neighbors.knn import KNN as KNN
from vantage.evaluate.protocols.neighbors.knn import NearestNeighbor as NearestNeighbor
from vantage.evaluate.protocols.neighbors.retrieval import Retrieval as Retrieval
from vantage.evaluate.protocols.linear.pooled import LinearMoCo as LinearMoCo
from vantage.evaluate.protocols.linear.pooled import LinearPyContrast as LinearPyContrast
from vantage.evaluate.protocols.linear.pooled import LinearCMC as LinearCMC
from vantage.evaluate.protocols.linear.depths import LinearRing as LinearRing
from vantage.evaluate.protocols.linear.multi import LinearMulti as LinearMulti
from vantage.evaluate.protocols.linear.multi import LinearPlaces as LinearPlaces
from vantage.evaluate.protocols.linear.logistic import LinearCached as LinearCached
from vantage.evaluate.protocols.svm.svm import SVM as SVM
from vantage.evaluate.protocols.svm.lowshot import LowShot as LowShot
from vantage.evaluate.protocols.svm.lowshot import LowShotChosen as LowShotChosen
from vantage.evaluate.protocols.finetune.finetune import FineTune as FineTune
from vantage.evaluate.protocols.finetune.rate_choice import FineTuneChosen as FineTuneChosen

__all__ = make_public(globals())  # pyright: ignore
