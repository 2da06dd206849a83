"""The forward and backward passes of one optimizer step, of a whole batch or of its accumulated parts.

Parts are computed one after another to save memory. What they compute is what the whole batch does, to rounding:

* Keys without gradient (of a momentum encoder) are encoded for all parts first, so that shuffle-BN shuffles the keys of
  the joint batch, and queries may be compared with all of them.
* If queries are compared with keys of their own step that have a gradient (SimCLR), all parts are encoded twice.
* Otherwise (banks) each part has the loss of its queries. All parts are computed once more before, without gradient, if
  the first loss depends on all of them: for an estimator (`TableEstimator.waits`), or to count the queries that have a
  positive (`must_count`).
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from vantage import draws, processes
from vantage.branch import Branch
from vantage.data import Batch
from vantage.encoders.normalization.running import RunningStatistics
from vantage.encoders.roles import KeysFirst, RoleNetworks
from vantage.learner import Learner
from vantage.memory import ReadsFresh
from vantage.step import Fresh, GatheredKeys, Step, StepKeys
from vantage.training.computing.accumulation import (
    Part,
    divide_gradients,
    loss_of_part,
    must_count,
    parts_of_batch,
    with_weight,
)
from vantage.training.run import Run
from vantage.views.operations.share import ShareGenerator

if TYPE_CHECKING:
    from lightning_fabric import Fabric

__all__ = ["StepContext", "encodes_apart", "forward_backward"]

_VIEWS, _NETWORKS, _KEYS = 2, 3, 4  # what a seed is for


@runtime_checkable
class StepContext(Protocol):
    """What passes are made with. A session is one."""

    run: Run
    fabric: "Fabric"
    learner: Learner
    model: Any
    """The learner as Fabric has set it up."""
    generator: ShareGenerator
    """Draws the views."""

    def views_of(self, batch: Batch, step: int) -> list[Tensor]:
        """The views of a batch, drawn from the generator."""
        ...


def forward_backward(context: StepContext, batch: Batch, step: int) -> list[Step]:
    """Add the gradients of a batch. Returns the results of the losses: one, or one for each part."""
    parts = parts_of_batch(batch, context.run.accumulate)
    if not encodes_apart(context.learner.networks, context.run.branches, len(parts)):
        return _one_by_one(context, parts, step)
    if isinstance(context.learner.networks, KeysFirst):
        return _one_by_one(context, _with_keys(context, parts, step), step)
    return [_jointly(context, parts, step)]


def encodes_apart(networks: RoleNetworks, branches: Sequence[Branch], parts: int) -> bool:
    """Whether vectors of accumulated parts are encoded before the first loss, to be compared with each other."""
    return parts > 1 and (isinstance(networks, KeysFirst) or any(isinstance(b.memory, ReadsFresh) for b in branches))


def _one_by_one(context: StepContext, parts: list[Part], step: int) -> list[Step]:
    """The loss of each part, and its gradients."""
    results, statistics = list[Step](), RunningStatistics(context.learner.networks, len(parts))
    several, branches = len(parts) > 1, context.run.branches
    numbers = with_weight(branches, step) if several else []
    shown = several and (context.learner.waits or must_count(branches, numbers))
    shares = _show(context, parts, step, statistics) if shown else []
    _seed(context, step, _NETWORKS)
    for part in parts:
        with _exchange(context, part is parts[-1]):
            result = _forward(context, part, step)
            context.fabric.backward(loss_of_part(result, len(parts), shares))
        statistics.end_part()
        results.append(_detached(result))
    statistics.end()
    if numbers and not shown:  # all of these branches have the same shares
        divide_gradients(context.learner.parameters(), [result.fresh.shares[numbers[0]] for result in results])
    return results


def _forward(context: StepContext, part: Part, step: int) -> Step:
    views = _views(context, part, step) if part.views is None else part.views
    return context.model(views, part.batch.image, step, None if part.keys is None else lambda: part.keys)


@torch.no_grad()
def _show(context: StepContext, parts: list[Part], step: int, statistics: RunningStatistics) -> list[Tensor]:
    """The shares of each part's queries that have a positive (`Fresh.shares`), from a pass over all parts that leaves a
    trace only in estimators that need it (`TableEstimator.waits`)."""
    _seed(context, step, _NETWORKS)
    shares = list[Tensor]()
    for part in parts:
        shares.append(_forward(context, part, step).fresh.shares)
        statistics.forget()
    return shares


def _with_keys(context: StepContext, parts: list[Part], step: int) -> list[Part]:
    """The parts with their keys. The views of all parts are held at once."""
    precision = context.fabric.strategy.precision
    views = [precision.convert_input(_views(context, part, step)) for part in parts]
    _seed(context, step, _KEYS)
    with precision.forward_context():  # DDP is not needed without a gradient
        keys = context.learner.encode_keys_first(views, [part.batch.image for part in parts], step)
    return [part._replace(views=v, keys=k) for part, v, k in zip(parts, views, keys, strict=True)]


def _jointly(context: StepContext, parts: list[Part], step: int) -> Step:
    """The loss of the joint batch, from parts that are encoded without gradient. It gives a gradient to each vector,
    with which each part is encoded once more to give one to the parameters (GradCache, arXiv 2101.06983)."""
    learner, count = context.learner, len(parts)
    parts = [part._replace(views=_views(context, part, step)) for part in parts]
    encoded, statistics = list[tuple[Tensor, ...]](), RunningStatistics(learner.networks, count)
    for part in parts:
        with torch.no_grad():
            encoded.append(_encode(context, part, step))
        statistics.end_part()
    statistics.end()
    vectors = [torch.cat(rows).requires_grad_() for rows in zip(*encoded, strict=True)]
    result = _contrast(context, vectors, torch.cat([part.batch.image for part in parts]), count, step)
    context.fabric.backward(result.loss)
    statistics = RunningStatistics(learner.networks, count)  # which count every part now: no second time
    for part in parts:
        with _exchange(context, part is parts[-1]):
            own = _encode(context, part, step)
            used = [(rows, of_all.grad) for rows, of_all in zip(own, vectors, strict=True) if of_all.grad is not None]
            torch.autograd.backward(
                [rows for rows, _ in used], [gradient.chunk(count)[part.number] for _, gradient in used]
            )
        statistics.forget()
    return _detached(result)


def _encode(context: StepContext, part: Part, step: int) -> tuple[Tensor, ...]:
    """The vectors of a part on this process: of `Learner.query_views`, then of `key_views`. Networks that draw random
    numbers draw the same ones each time."""
    learner, precision = context.learner, context.fabric.strategy.precision
    _seed(context, step, _NETWORKS, part.number)
    with precision.forward_context():
        views = precision.convert_input(part.views)
        queries, keys = context.model.encode(views, learner.orders(views, step))
        own = (processes.own_rows(keys[view]) for view in learner.key_views)
        return (*(queries[view] for view in learner.query_views), *own)


def _contrast(context: StepContext, vectors: list[Tensor], image: Tensor, parts: int, step: int) -> Step:
    """The loss of the vectors of all parts."""
    learner, precision = context.learner, context.fabric.strategy.precision
    with precision.forward_context():
        rows = iter(vectors)
        queries, keys = ({view: next(rows) for view in views} for views in (learner.query_views, learner.key_views))
        joint = {view: processes.gather_joint(vector, parts) for view, vector in keys.items()}
        batch = GatheredKeys(joint, processes.gather_joint(image, parts))
        return learner.contrast(queries, StepKeys(keys, batch, batch), image, step, learner.seeds({}, image, step))


def _views(context: StepContext, part: Part, step: int) -> list[Tensor]:
    """A part's share of the views of the joint batch, which are all drawn for each part on each process."""
    size, world, generator = len(part.batch.image), processes.count(), context.generator
    first = (part.number * world + processes.rank()) * size
    generator.manual_seed(draws.mix(context.run.seed, step, 0, _VIEWS))
    generator.share = (first, first + size, context.run.accumulate * world * size)
    return context.views_of(part.batch, step)


def _seed(context: StepContext, step: int, *purpose: int) -> None:
    """Begin the random numbers of a step's networks."""
    draws.set_torch_seed(draws.mix(context.run.seed, step, processes.rank(), *purpose), context.fabric.device)


def _exchange(context: StepContext, is_last: bool) -> AbstractContextManager[Any]:
    """Processes average their gradients once, in the backward pass of the last part."""
    return nullcontext() if is_last else context.fabric.no_backward_sync(context.model)


def _detached(result: Step) -> Step:
    return result._replace(loss=result.loss.detach(), terms=result.terms.detach(), fresh=Fresh(*result.fresh))
