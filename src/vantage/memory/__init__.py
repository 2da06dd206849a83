"""Which keys are remembered between steps."""

from vantage.memory.bank import Bank, BankStore
from vantage.memory.in_batch import InBatch, InBatchStore
from vantage.memory.queue import Queue, QueueStore
from vantage.memory.store import Memory, Store

__all__ = ["Bank", "BankStore", "InBatch", "InBatchStore", "Memory", "Queue", "QueueStore", "Store"]
