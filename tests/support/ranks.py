"""The work of each of two processes, and of one alone, for `test_learner.py` and `test_processes.py`."""

import gc
import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import rank_cases
import small_recipes
import small_runs
import synthetic
import torch
import torch.distributed as dist
import torch.multiprocessing as spawning
from torch import Tensor
from torch.nn.parallel import DistributedDataParallel

from vantage import processes
from vantage.branch import Branch
from vantage.data import Batch
from vantage.encoders.normalization.grouped import set_accumulation
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.learner import Learner
from vantage.memory import Queue, kmeans
from vantage.positives import OtherViews
from vantage.processes.sharing import gather_rows, own_parts, own_slice, parts_in_order, true_on_all, value_of_first
from vantage.records import Keys, Scores
from vantage.step import joint_loss
from vantage.training.computing.passes import forward_backward
from vantage.views.operations.share import ShareGenerator

STEPS = 5


class Wrapped(DistributedDataParallel):
    """A learner whose `encode` may be called as Fabric calls it."""

    def encode(self, *inputs: Any) -> Any:
        """`Learner.encode`, with the exchange of gradients."""
        self.module.forward = self.module.encode
        try:
            return self(*inputs)
        finally:
            del self.module.forward


def train(run: Any, wrap: bool) -> dict[str, Any]:
    """A few steps of plain gradient descent, each in as many parts as the run accumulates: every loss, gradient,
    parameter and store."""
    learner = small_recipes.learner(run)
    set_accumulation(learner.networks, run.accumulate)
    session = alone(run, learner, Wrapped(learner, broadcast_buffers=False) if wrap else learner)
    parameters = [p for p in learner.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=0.3, momentum=0.9)
    losses, shares, gradients, keys = [], [], [], []
    for step, (views, image) in enumerate(small_recipes.batches(STEPS, small_recipes.shapes(run))):
        learner.before_step(step)
        optimizer.zero_grad()
        image, *session.views = (own_parts_of(rows, run.accumulate) for rows in (image, *views))
        results = forward_backward(session, numbered(image), step)
        gradients.append({n: p.grad.clone() for n, p in learner.named_parameters() if p.grad is not None})
        optimizer.step()
        fresh = [result.fresh for result in results]
        learner.after_step(fresh, step)
        losses.append(float(processes.total(joint_loss(fresh))) / processes.count())
        shares.append([part.shares.tolist() for part in fresh])
        keys.append([[{n: v.clone() for n, v in part.vectors.items()}, part.image.clone()] for part in fresh])
    return {"losses": losses, "shares": shares, "gradients": gradients, "keys": keys, "state": learner.state_dict()}


def own_parts_of(rows: Tensor, parts: int) -> Tensor:
    """This process's rows of each accumulated part of the joint batch."""
    return torch.cat([processes.own_rows(part) for part in rows.chunk(parts)])


def numbered(image: Tensor) -> Batch:
    """A batch whose pixels are the numbers of its rows."""
    rows = torch.arange(len(image), dtype=torch.uint8)
    return Batch(image, (rows.view(-1, 1, 1, 1).expand(-1, 3, 1, 1),))


def alone(run: Any, learner: Learner, model: Any) -> Any:
    """All that `forward_backward` needs of a session, whose `views` are those of the rows of a `numbered` batch."""
    precision = SimpleNamespace(convert_input=lambda inputs: inputs, forward_context=nullcontext)
    fabric = SimpleNamespace(
        device=torch.device("cpu"),
        backward=lambda loss: loss.backward(),
        no_backward_sync=lambda model: model.no_sync() if model is not learner else nullcontext(),
        strategy=SimpleNamespace(precision=precision),
    )
    session = SimpleNamespace(run=run, learner=learner, model=model, fabric=fabric, generator=ShareGenerator())
    session.views_of = lambda batch, step: [view[batch.pixels[0][:, 0, 0, 0].long()] for view in session.views]
    return session


def one_process() -> dict[str, Any]:
    """All cases with the joint batch on one process."""
    return {name: train(run, wrap=False) for name, run in rank_cases.cases().items()}


def some_recipes(names: Sequence[str], folder: Path) -> None:
    """The cases named, or all of them, on several processes, each with its share of the batch and of the two groups."""
    results = {name: train(run, wrap=True) for name, run in rank_cases.cases().items() if name in names or not names}
    torch.save(results, folder / f"{processes.rank()}.pt")


def all_variants(folder: Path) -> None:
    """All variants on several processes."""
    torch.save(
        {name: train(run, wrap=True) for name, run in rank_cases.variants().items()}, folder / f"{processes.rank()}.pt"
    )


def gathering(folder: Path) -> None:
    """Write the results of the functions of `processes` on this rank."""
    rank, results = processes.rank(), {}
    rows = (torch.arange(6.0).reshape(3, 2) + 10 * rank).requires_grad_()
    all_rows = processes.gather(rows)
    results["count"], results["rank"], results["joined"] = processes.count(), rank, all_rows.detach()
    results["own"] = torch.equal(processes.own_rows(all_rows), rows)
    results["total"] = processes.total(torch.tensor(rank + 1.0))
    results["integers"] = processes.gather(torch.arange(2) + 100 * rank)
    # Each process weights the joined rows differently; the gradient is the sum of both weights.
    weight = torch.arange(12.0).reshape(6, 2) * (rank + 1)
    other = torch.zeros(6, 2, requires_grad=True)
    both = all_rows + other  # autograd hands one gradient tensor to both
    (both * weight).sum().backward()
    results["gradient"], results["other"] = rows.grad, other.grad
    results["loss"], results["query"] = uneven_parts(processes.own_rows)
    results |= {"shared": sharing(), "stopped": stopping()}
    torch.save(results, folder / f"{rank}.pt")


def leaving(folder: Path) -> None:
    """Leave the group while an object that refers to itself holds it, as a model wrapped by DDP does; write how many of
    gloo's threads there were before and after."""
    gc.disable()
    holder = SimpleNamespace(group=dist.group.WORLD)
    holder.itself = holder
    del holder
    rank, before = processes.rank(), _gloo_threads()
    processes.leave()
    torch.save({"threads": torch.tensor([before, _gloo_threads()])}, folder / f"{rank}.pt")


def _gloo_threads() -> int:
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum("gloo" in name for name in names)


def sharing() -> dict[str, Any]:
    """The results of the functions of `sharing`, on one process or several."""
    parts = [torch.full((number % 3 + 1, 2), float(number)) for number in range(5)]
    results: dict[str, Any] = {"in order": list(parts_in_order(iter(own_parts(parts)), 5, (2,)))}
    results["of none"] = list(parts_in_order(iter([]), 0, (2,)))
    rows = synthetic.vectors(7, 3, 0)
    results["shares"] = gather_rows(rows[own_slice(7)], 7)
    results["one row"] = gather_rows(rows[own_slice(1)], 1)
    results["everywhere"] = [
        true_on_all(True),
        true_on_all(processes.rank() == 0),
        value_of_first(7 + processes.rank()),
    ]
    vector, label = synthetic.vectors(300, 4, 2).float(), torch.arange(300) % 11
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kmeans, "_BYTES", 1000)
        results["k-means"] = kmeans.kmeans(vector, 9, 7, 30)
        results["sums"] = kmeans.sums(label, vector, 11, torch.float64)
    return results


def stopping() -> list[str]:
    """This process's message if one process fails at first, stops reading, or fails at the last part."""
    words = []
    for failure in ("first", "reads no further", "last"):
        try:
            for number, _ in enumerate(parts_in_order(_turns(failure), 6, (1,))):
                if failure == "reads no further" and processes.rank() == 0 and number == 2:
                    raise ValueError(failure)
                if failure == "last" and processes.rank() == 1 and number == 5:
                    raise ValueError(failure)
            words.append("")
        except (ValueError, UserError) as problem:
            words.append(str(problem))
    return words


def _turns(failure: str) -> Iterator[Tensor]:
    for turn in range(3):
        if failure == "first" and processes.rank() == 1 and turn == 1:
            raise ValueError(failure)
        yield torch.zeros(1, 1)


@dataclass(frozen=True)
class SomePositives:
    """The other views, except for images above 3, so that the halves of a batch have different numbers of positives."""

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Keys, step: int) -> Scores:
        """The positives of images 0 to 3."""
        return OtherViews()(query, keys, pool, step).only(query.image[:, None] < 4)


def uneven_parts(part: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor]:
    """Loss and gradient to the queries if only four of six images have a positive; `part` selects this process's
    rows."""
    vector, key = part(synthetic.vectors(6, 4, 0)).requires_grad_(), part(synthetic.vectors(6, 4, 1))
    image, pool = part(torch.arange(6)), synthetic.keys(9, 4, 2)
    estimator = InfoNCE(0.2)
    branch = Branch(Queue(9), SomePositives(), (), estimator)
    loss = branch.contrast(Keys(vector, image), (Keys(key, image),), pool, 0).loss
    loss.backward()
    assert vector.grad is not None
    return loss.detach(), vector.grad


def _enter(rank: int, work: Callable[[Path], None], folder: Path, count: int) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=count)
    try:
        work(folder)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def spawn(work: Callable[[Path], None], folder: Path, count: int = 2) -> list[dict[str, Any]]:
    """Run `work` on `count` processes connected by gloo, and return what each wrote. They are forked from one that has
    only imported modules."""
    multiprocessing.set_forkserver_preload(small_runs.PRELOADED)
    spawning.start_processes(_enter, (work, folder, count), nprocs=count, start_method="forkserver")  # pyright: ignore
    return [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(count)]
