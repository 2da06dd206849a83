"""The networks' passes as CUDA graphs: forward and backward are recorded once and then repeated by the device.

A pass of a small network is hundreds of short kernels. The host needs longer to start them one by one than the device
to compute them; a graph starts with a single call. Losses and memories are computed as before, so any recipe can train
so. The numbers are those of the same pass without a graph. A network whose Python code decides anew in each step what
it computes must be trained with `Hardware(graphs=False)`: a graph repeats what was decided when it was recorded.

b: images here   w: processes   d: width
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from vantage import processes
from vantage.learner import Learner
from vantage.training.run import Run

__all__ = ["can_record", "record_networks"]

_WARM = 3  # passes before one is recorded, in which libraries choose their ways and take their memory

_Vectors = dict[int, Tensor]
_Encode = Callable[[list[Tensor], dict[int, Tensor]], tuple[_Vectors, _Vectors]]


def can_record(run: Run, device: torch.device) -> bool:
    """Whether the passes of a run can be recorded on this device: one process, one backward pass after each forward
    pass, and inputs that the precision leaves as they are."""
    alone, as_is = processes.count() == 1 and run.accumulate == 1, run.hardware.precision != "64-true"
    return device.type == "cuda" and alone and as_is


def record_networks(learner: Learner) -> None:
    """Record `Learner.encode` and its backward pass when it is first called, for each shape of views, and repeat them
    from then on. A learner that cannot be recorded computes as before, with a warning."""
    learner.encode = _Recordings(learner).encode


class _Recording(NamedTuple):
    """Two graphs, and the fixed places from which they read and to which they write."""

    forward: Callable[[], None]
    backward: Callable[[], None]
    inputs: tuple[Tensor, ...]
    """Views, then orders of shuffle-BN."""
    outputs: list[Tensor]
    """The vectors, each once."""
    slopes: list[Tensor | None]
    """The gradients of the outputs that need one."""
    gradients: list[tuple[nn.Parameter, Tensor]]
    """The gradient of each parameter that gets one."""
    places: tuple[dict[int, int], dict[int, int]]
    """Which outputs are the queries and which the keys, by view."""


class _Recordings:
    """The recordings of a learner by the shapes of what it encodes."""

    def __init__(self, learner: Learner) -> None:
        self.learner, self.compute = learner, learner.encode
        self.made: dict[Any, _Recording | None] = {}
        self.pool: Any = None  # all graphs share it: they never run at the same time, and read nothing of each other
        self.root = torch.zeros((), requires_grad=True)  # what makes autograd call the backward pass

    def encode(
        self, views: list[Float[Tensor, "b ..."]], orders: dict[int, Int[Tensor, "n"]]
    ) -> tuple[dict[int, Float[Tensor, "b d"]], dict[int, Float[Tensor, "w_b d"]]]:
        """`Learner.encode` by a recording. The vectors are overwritten by the next call."""
        inputs = (*views, *orders.values())
        shapes = tuple((tensor.shape, tensor.stride(), tensor.dtype) for tensor in inputs)
        if shapes not in self.made:
            self.made[shapes] = self._make(inputs, len(views), tuple(orders))
        recording = self.made[shapes]
        if recording is None:
            return self.compute(views, orders)
        outputs = _Replay.apply(self.root, recording, *inputs)
        assert isinstance(outputs, tuple)
        queries, keys = ({view: outputs[at] for view, at in places.items()} for places in recording.places)
        return queries, keys

    def _make(self, inputs: tuple[Tensor, ...], views: int, rows: tuple[int, ...]) -> _Recording | None:
        """Record passes on such inputs, or warn and return `None`. Nothing but memory is used up: buffers and random
        numbers are as before."""
        buffers = list(self.learner.networks.buffers())
        before, state = [buffer.clone() for buffer in buffers], torch.cuda.get_rng_state()
        half = torch.get_autocast_dtype("cuda"), torch.is_autocast_enabled("cuda")
        try:
            with torch.autocast("cuda", *half, cache_enabled=False):  # the cache would keep casts of old weights
                return self._record(tuple(tensor.clone() for tensor in inputs), views, rows)
        except RuntimeError as problem:
            line = str(problem).strip().partition("\n")[0]
            warnings.warn(
                "no CUDA graph can be recorded, so kernels are started one by one, as with --set hardware.graphs=False:"
                f" {line}",
                stacklevel=2,
            )
            return None
        finally:
            with torch.no_grad():
                for buffer, value in zip(buffers, before, strict=True):
                    buffer.copy_(value)
            torch.cuda.set_rng_state(state)
            self.learner.networks.zero_grad(set_to_none=True)

    def _record(self, inputs: tuple[Tensor, ...], views: int, rows: tuple[int, ...]) -> _Recording:
        weights = [weight for weight in self.learner.networks.parameters() if weight.requires_grad]
        orders, outputs = dict(zip(rows, inputs[views:], strict=True)), list[Tensor]()
        slopes, places = list[Tensor | None](), list[dict[int, int]]()

        def forward() -> list[Tensor]:
            sides = self.compute(list(inputs[:views]), orders)
            once = {id(vector): vector for side in sides for vector in side.values()}
            number = {vector: at for at, vector in enumerate(once)}
            outputs[:] = once.values()
            places[:] = [{view: number[id(vector)] for view, vector in side.items()} for side in sides]
            return outputs

        def backward() -> list[Tensor]:
            for weight in weights:
                weight.grad = None
            pairs = [(out, slope) for out, slope in zip(outputs, slopes, strict=True) if slope is not None]
            torch.autograd.backward([out for out, _ in pairs], [slope for _, slope in pairs])
            return [weight.grad for weight in weights if weight.grad is not None]

        def both() -> None:
            slopes[:] = [torch.zeros_like(out) if out.requires_grad else None for out in forward()]
            backward()
            outputs.clear()  # what autograd keeps belongs to the stream of this pass

        warm(both)
        repeat_forward, recorded, self.pool = capture(forward, self.pool)
        vectors = [out.detach() for out in recorded]
        repeat_backward, gradients, self.pool = capture(backward, self.pool)
        pairs = list(zip([weight for weight in weights if weight.grad is not None], gradients, strict=True))
        outputs.clear()
        return _Recording(repeat_forward, repeat_backward, inputs, vectors, slopes, pairs, (places[0], places[1]))


def warm(work: Callable[[], None]) -> None:
    """Do some work a few times, beside the current stream."""
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for _ in range(_WARM):
            work()
    torch.cuda.current_stream().wait_stream(aside)


def capture(work: Callable[[], list[Tensor]], pool: Any) -> tuple[Callable[[], None], list[Tensor], Any]:
    """Record some work. Returns what repeats it, its results, which every repetition overwrites, and the pool of memory
    that it uses: that of an earlier recording, if it is given. All that it reads must stay where it is."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        results = work()
    return graph.replay, list(results), graph.pool()


class _Replay(torch.autograd.Function):
    """The recorded passes as one operation."""

    @staticmethod
    def forward(ctx: Any, root: Tensor, recording: _Recording, *inputs: Tensor) -> tuple[Tensor, ...]:
        """The vectors."""
        ctx.recording = recording
        for place, value in zip(recording.inputs, inputs, strict=True):
            place.copy_(value)
        recording.forward()
        outputs = tuple(out.detach() for out in recording.outputs)
        pairs = zip(outputs, recording.slopes, strict=True)
        ctx.mark_non_differentiable(*(out for out, slope in pairs if slope is None))
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *slopes: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Leaves the gradients in the parameters' `grad`."""
        recording = ctx.recording
        for place, value in zip(recording.slopes, slopes, strict=True):
            if place is not None:
                place.copy_(value)
        recording.backward()
        for parameter, gradient in recording.gradients:
            parameter.grad = gradient
        return (None, None, *[None] * len(recording.inputs))
