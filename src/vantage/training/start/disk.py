"""How much of the disk a run's checkpoints will take, told before its first step."""

import shutil
from pathlib import Path

import torch
from torch import Tensor, nn

from vantage import processes
from vantage.errors import quantity
from vantage.learner import Learner
from vantage.progress import Progress
from vantage.training.folder.checkpoint import KEEP, complete_checkpoints
from vantage.training.folder.kept_epochs import kept_epochs
from vantage.training.optimizers import Optimizer
from vantage.training.run import Run
from vantage.training.start.footprint import module_bytes, tensor_bytes
from vantage.training.watching.branches import monitor_of

__all__ = ["checkpoint_bytes", "tell_disk"]

_LARGE = 10**9
"""Bytes of all checkpoints together from which a run says how many they are."""


def tell_disk(run: Run, learner: Learner, folder: Path, progress: Progress) -> None:
    """Say how much disk a run's checkpoints take if that is 1 GB or more, and warn if less is free. The first process
    calls this."""
    each, kept = checkpoint_bytes(run, learner), _kept(run)
    most = (KEEP + 1 + kept) * each  # an old one is removed once the next one is complete
    if most >= _LARGE:
        epochs = f", and {quantity(kept, 'epoch')} kept for good" if kept else ""
        progress.line(
            f"a checkpoint has {_size(each)}: up to {KEEP + 1} are on the disk at a time{epochs}, {_size(most)} in all"
        )
    more = most - each * (len(complete_checkpoints(folder)) + len(kept_epochs(folder)))
    free = shutil.disk_usage(folder).free
    if free < more:
        progress.warn(
            f"checkpoints will take {_size(more)} more, but {folder} has {_size(free)} left: free some space, or"
            " training stops once the disk is full"
        )


def checkpoint_bytes(run: Run, learner: Learner) -> int:
    """Bytes of the tensors in a checkpoint of a run: the learner's, the optimizer's state, and the sums of an epoch."""
    stores = sum(
        tensor_bytes(learner.stores[name].buffers()) * (processes.count() if _is_sharded(run, int(name)) else 1)
        for name in learner.stores
    )
    parts = (learner.networks, learner.estimators, learner.adapted, monitor_of(run, learner))
    others = sum(map(module_bytes, parts))
    trained = tensor_bytes(weight for weight in learner.parameters() if weight.requires_grad)
    return stores + others + trained * _numbers_per_weight(run.optimizer)


def _is_sharded(run: Run, branch: int) -> bool:
    """Whether each process has a part of a branch's memory; the checkpoint holds all parts."""
    return bool(getattr(run.branches[branch].memory, "sharded", False))


def _kept(run: Run) -> int:
    """How many epochs a run keeps for good."""
    every = run.monitoring.keep_every
    return -(-run.epochs // every) if every else 0


def _numbers_per_weight(choice: Optimizer) -> int:
    """How many numbers an optimizer remembers for each weight, from one step with a single weight."""
    weight = nn.Linear(1, 1, bias=False, device="cpu")
    weight.weight.grad = torch.zeros_like(weight.weight)
    try:
        optimizer = choice.build(weight)
        optimizer.step()
        slots = optimizer.state[weight.weight].values()
        return sum(isinstance(slot, Tensor) and slot.shape == weight.weight.shape for slot in slots)
    except Exception:  # a user's own may need more than one weight, or keep its state elsewhere: it is left out
        return 0


def _size(count: int) -> str:
    """A number of bytes in GB, or in MB if it is less than one."""
    return f"{count / 1e9:,.1f} GB" if count >= _LARGE else f"{max(1, round(count / 1e6)):,} MB"
