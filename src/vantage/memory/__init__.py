"""Which keys are remembered between steps."""

from vantage.memory.bank import Bank, BankStore
from vantage.memory.clustered import ClusteredBank, OnlineStore
from vantage.memory.first_labels import Apart, FirstLabels, Together
from vantage.memory.in_batch import InBatch, InBatchStore
from vantage.memory.kmeans import Distance, InnerProduct
from vantage.memory.queue import Queue, QueueStore
from vantage.memory.reclustered import ReclusteredBank, ReclusteredStore
from vantage.memory.remember import EachKey, MeanKey, Remember, UnitMeanKey
from vantage.memory.store import Memory, Store, StoreOf

__all__ = [
    "EachKey",
    "MeanKey",
    "Remember",
    "UnitMeanKey",
    "Apart",
    "Bank",
    "BankStore",
    "ClusteredBank",
    "Distance",
    "FirstLabels",
    "InBatch",
    "InBatchStore",
    "InnerProduct",
    "Memory",
    "OnlineStore",
    "Queue",
    "QueueStore",
    "ReclusteredBank",
    "ReclusteredStore",
    "Store",
    "StoreOf",
    "Together",
]
