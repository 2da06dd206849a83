"""Which keys are remembered between steps."""

from vantage.composition.public import make_public
from vantage.memory.bank import Bank as Bank
from vantage.memory.bank import BankStore as BankStore
from vantage.memory.clustered import ClusteredBank as ClusteredBank
from vantage.memory.clustered import OnlineStore as OnlineStore
from vantage.memory.first_labels import Apart as Apart
from vantage.memory.first_labels import Blocks as Blocks
from vantage.memory.first_labels import FirstLabels as FirstLabels
from vantage.memory.first_labels import Together as Together
from vantage.memory.in_batch import InBatch as InBatch
from vantage.memory.in_batch import InBatchStore as InBatchStore
from vantage.memory.kmeans import Distance as Distance
from vantage.memory.kmeans import InnerProduct as InnerProduct
from vantage.memory.labeled import LabeledBank as LabeledBank
from vantage.memory.labeled import LabeledStore as LabeledStore
from vantage.memory.queue import Queue as Queue
from vantage.memory.queue import QueueStore as QueueStore
from vantage.memory.reclustered import ReclusteredBank as ReclusteredBank
from vantage.memory.reclustered import ReclusteredStore as ReclusteredStore
from vantage.memory.remember import EachKey as EachKey
from vantage.memory.remember import MeanKey as MeanKey
from vantage.memory.remember import Remember as Remember
from vantage.memory.remember import UnitMeanKey as UnitMeanKey
from vantage.memory.store import Memory as Memory
from vantage.memory.store import ReadsFresh as ReadsFresh
from vantage.memory.store import Store as Store
from vantage.memory.store import StoreOf as StoreOf

__all__ = make_public(globals())  # pyright: ignore
