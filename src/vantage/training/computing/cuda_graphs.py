"""Training steps as CUDA graphs: forward and backward are recorded once and then repeated by the device.

A step of a small network is over a thousand short kernels. The host needs longer to start them one by one than the
device to compute them; a graph starts with a single call. Its numbers are those of the same step without a graph.

b: images here
"""

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vantage import processes
from vantage.learner import Learner
from vantage.step import Step, StepSeeds
from vantage.training.computing.compiling import is_one_graph
from vantage.training.run import Run

__all__ = ["RecordedSteps", "can_be_recorded"]

_WARM = 3  # steps before one is recorded, in which libraries choose their ways and take their memory


def can_be_recorded(run: Run, device: torch.device) -> bool:
    """Whether the steps of a run can be recorded on this device: one process, one backward pass after each forward
    pass, inputs and gradients that its precision leaves alone, and every step the same operations."""
    alone, plain = processes.count() == 1 and run.accumulate == 1, run.hardware.precision in ("32-true", "bf16-mixed")
    return device.type == "cuda" and alone and plain and is_one_graph(run.branches)


def record(learn: Callable[[], Step], pool: Any) -> tuple[Callable[[], None], Step, Any]:
    """Compute a step a few times, then record it. Returns what repeats it, its result, which every repetition
    overwrites, and the pool of memory that it uses: that of an earlier graph, if it is given. All tensors that the step
    reads must stay where they are."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(_WARM):
            learn()
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = learn()
    return graph.replay, result, graph.pool()


class _Recorded(NamedTuple):
    """A recorded step, and the fixed places from which it reads and to which it writes."""

    repeat: Callable[[], None]
    """What computes it again."""
    inputs: tuple[Tensor, ...]
    """Views, images' numbers, seeds of the queries, and orders of shuffle-BN."""
    result: Step
    """The step."""
    gradients: list[tuple[nn.Parameter, Tensor]]
    """The gradient of each parameter that has one."""


class RecordedSteps:
    """Forward and backward passes of a learner, recorded for each shape of views when they are first computed."""

    def __init__(self, learner: Learner, autocast: Callable[[], AbstractContextManager[Any]]) -> None:
        """`autocast` gives the context of the run's precision."""
        self.learner, self.autocast = learner, autocast
        self.recorded: dict[Any, _Recorded | None] = {}
        self.addresses: tuple[int, ...] = ()
        self.pool: Any = None  # all graphs share it: they never run at the same time, and read nothing of each other

    def __call__(self, views: list[Float[Tensor, "b ..."]], image: Int[Tensor, "b"], step: int) -> Step | None:
        """The step, with its gradients left in the parameters' `grad`; `None`, after a warning, if it cannot be
        recorded. All but its loss is overwritten by the next one."""
        seeds = self.learner.seeds(views, image, step)
        inputs = (*views, image, seeds.query, *seeds.orders.values())
        shapes = tuple((tensor.shape, tensor.stride(), tensor.dtype) for tensor in inputs)
        self._forget_if_moved()
        if shapes not in self.recorded:
            self.recorded[shapes] = self._record(inputs, len(views), tuple(seeds.orders))
        recorded = self.recorded[shapes]
        if recorded is None:
            return None
        for place, value in zip(recorded.inputs, inputs, strict=True):
            place.copy_(value)
        recorded.repeat()
        for parameter, gradient in recorded.gradients:
            parameter.grad = gradient
        return recorded.result._replace(loss=recorded.result.loss.clone())

    def _forget_if_moved(self) -> None:
        """Forget all graphs if a memory lies elsewhere than when they were recorded."""
        addresses = tuple(value.data_ptr() for value in self.learner.stores.buffers())
        if addresses != self.addresses:
            self.recorded.clear()
            self.addresses = addresses

    def _record(self, inputs: tuple[Tensor, ...], views: int, rows: tuple[int, ...]) -> _Recorded | None:
        """Record a step with such inputs, or warn and return `None`. Nothing but memory is used up: buffers and random
        numbers are as before."""
        buffers = list(self.learner.buffers())
        before, state = [buffer.clone() for buffer in buffers], torch.cuda.get_rng_state()
        try:
            return self._capture(tuple(tensor.clone() for tensor in inputs), views, rows)
        except RuntimeError as problem:
            line = str(problem).strip().partition("\n")[0]
            warnings.warn(f"this step cannot be a CUDA graph; its operations start one by one: {line}", stacklevel=2)
            return None
        finally:
            with torch.no_grad():
                for buffer, value in zip(buffers, before, strict=True):
                    buffer.copy_(value)
            torch.cuda.set_rng_state(state)
            self.learner.zero_grad(set_to_none=True)

    def _capture(self, inputs: tuple[Tensor, ...], views: int, rows: tuple[int, ...]) -> _Recorded:
        image, query, *orders = inputs[views:]
        seeds = StepSeeds(dict(zip(rows, orders, strict=True)), query, 0)

        def learn() -> Step:
            """One step; no part of it reads the number of the step or the seed of all queries together."""
            self.learner.zero_grad(set_to_none=True)
            with self.autocast():
                result = self.learner.compute(list(inputs[:views]), image, 0, seeds)
            result.loss.backward()
            return result._replace(loss=result.loss.detach())

        repeat, result, self.pool = record(learn, self.pool)
        gradients = [(each, each.grad) for each in self.learner.parameters() if each.grad is not None]
        return _Recorded(repeat, inputs, result, gradients)
