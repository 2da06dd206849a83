"""Which keys are remembered between steps."""

from vantage.memory.bank import Bank, BankStore
from vantage.memory.clusters import ClusteredBank, ClusteredStore, OnlineStore, ReclusteredBank, ReclusteredStore
from vantage.memory.in_batch import InBatch, InBatchStore
from vantage.memory.kmeans import Distance, InnerProduct
from vantage.memory.queue import Queue, QueueStore
from vantage.memory.store import Memory, Store

__all__ = [
    "Bank",
    "BankStore",
    "ClusteredBank",
    "ClusteredStore",
    "Distance",
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
]
