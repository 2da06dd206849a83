"""Runs of small networks that are killed at some moment, on one process or several, and resumed. They must end as if
they had never been killed.

    python benchmarks/resume.py

A run is first trained without interruption. The same run is then killed by SIGKILL and resumed by new processes. The
losses of its next ten steps and every tensor of its last checkpoint are compared with those of the uninterrupted run.
"""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import small_runs
import torch
import torch.distributed as dist

from vantage.composition.codec import allowing
from vantage.memory import ClusteredBank, ReclusteredBank, clustered, reclustered
from vantage.storage.metrics import Metrics
from vantage.training import checkpoint
from vantage.training.loop import resume, train
from vantage.training.run import Hardware, Run
from vantage.training.session import Session
from vantage.training.watching import probe

EPOCHS, STEPS = 4, 10
KILLED_AFTER = 9
"""The step at which runs are killed; an epoch has six."""


def die() -> None:
    """End this process without a chance to clean up."""
    os.kill(os.getpid(), signal.SIGKILL)


def in_mid_epoch() -> None:
    """Die at a step that is not the first of its epoch."""
    step_of = Session.step

    def step(self: Session, batch: Any, number: int) -> torch.Tensor:
        if number == KILLED_AFTER:
            die()
        return step_of(self, batch, number)

    Session.step = step


def at_the_end_of_an_epoch() -> None:
    """Die after an epoch's row of metrics is written, and before its checkpoint."""
    write = Metrics.write

    def write_and_die(self: Metrics, row: dict[str, Any]) -> None:
        write(self, row)
        if row["epoch"] == 2:
            die()

    Metrics.write = write_and_die


def during_clustering() -> None:
    """Die after an iteration of k-means, when at least one step has been taken."""
    steps, step_of, kmeans = [0], Session.step, clustered.kmeans

    def step(self: Session, batch: Any, number: int) -> torch.Tensor:
        steps[0] += 1
        return step_of(self, batch, number)

    def kmeans_and_die(vector: Any, clusters: int, seed: int, iterations: int = 20) -> Any:
        if steps[0] == 0:
            return kmeans(vector, clusters, seed, iterations)
        kmeans(vector, clusters, seed, 1)
        return die()

    Session.step = step
    clustered.kmeans = reclustered.kmeans = kmeans_and_die


def during_a_checkpoint() -> None:
    """Die when half of a checkpoint's tensors are on disk."""
    save = checkpoint.save_file

    def save_half(tensors: dict[str, torch.Tensor], path: Path) -> None:
        save(tensors, path)
        if f"{KILLED_AFTER:09d}" in str(path):
            os.truncate(path, os.path.getsize(path) // 2)
            die()

    checkpoint.save_file = save_half


def during_an_evaluation() -> None:
    """Die during kNN in training, with the networks in evaluation mode."""
    evaluations, inside = [0], probe.in_evaluation

    @contextlib.contextmanager
    def evaluate_and_die(*networks: Any) -> Iterator[Any]:
        evaluations[0] += 1
        with inside(*networks) as value:
            if evaluations[0] == 2:
                die()
            yield value

    probe.in_evaluation = evaluate_and_die


MOMENTS: dict[str, Callable[[], None]] = {
    "mid-epoch": in_mid_epoch,
    "epoch end": at_the_end_of_an_epoch,
    "during clustering": during_clustering,
    "during a checkpoint's write": during_a_checkpoint,
    "during an evaluation": during_an_evaluation,
}


def run_of(recipe: str, images: str, processes: int) -> Run:
    """The recipe as small as in other tests, with kNN and clustering after every epoch."""
    run = small_runs.small_run(recipe, images, EPOCHS)
    run = replace(run, branches=tuple(replace(branch, memory=_often(branch.memory)) for branch in run.branches))
    hardware = Hardware("cpu", devices=processes, precision="32-true")
    return replace(run, hardware=hardware, monitoring=replace(run.monitoring, knn_every=1))


def _often(memory: Any) -> Any:
    if isinstance(memory, ClusteredBank):
        return replace(memory, refresh_every=1, first=1)
    return replace(memory, first=1) if isinstance(memory, ReclusteredBank) else memory


def moments_of(recipe: str) -> list[str]:
    """The moments that a run of the recipe has."""
    memories = [branch.memory for branch in small_runs.small_run(recipe, "").branches]
    clusters = any(isinstance(memory, ClusteredBank | ReclusteredBank) for memory in memories)
    return [moment for moment in MOMENTS if clusters or moment != "during clustering"]


def join(rank: int, processes: int, meeting: Path) -> None:
    """Join the other processes through a file; each has one thread."""
    torch.set_num_threads(1)
    if processes > 1:
        torchrun = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": processes}
        os.environ |= {name: str(value) for name, value in torchrun.items()}
        os.environ |= {"LOCAL_WORLD_SIZE": str(processes), "TORCHELASTIC_RUN_ID": "kills"}
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=processes)


def work(rank: int, processes: int, recipe: str, images: str, folder: Path, losses: Path, moment: str | None) -> None:
    """Train as one of the processes, or resume the run if there is one. At `moment`, if any, the process is killed."""
    join(rank, processes, Path(f"{losses}.meeting"))
    step_of = Session.step

    def step_with_note(self: Session, batch: Any, number: int) -> torch.Tensor:
        loss = step_of(self, batch, number)
        with Path(f"{losses}.{rank}").open("a") as file:
            file.write(f"{number} {float(loss.detach()).hex()}\n")
        return loss

    Session.step = step_with_note
    if moment is not None:
        MOMENTS[moment]()
    with allowing("tiny"):
        if (folder / "settings.json").exists():
            resume(folder)
        else:
            train(run_of(recipe, images, processes), folder)


def all_finish(processes: int, *arguments: Any, task: Callable[..., None] = work) -> bool:
    """Run `task` in these processes; returns whether all of them finish. If one is killed, so are the others."""
    workers = [small_runs.new_process(task, rank, processes, *arguments) for rank in range(processes)]
    while any(worker.is_alive() for worker in workers) and not any(worker.exitcode for worker in workers):
        time.sleep(0.01)
    for worker in workers:
        if any(other.exitcode for other in workers):
            worker.kill()
        worker.join()
    return all(worker.exitcode == 0 for worker in workers)


def losses_in(path: Path, processes: int) -> dict[int, list[str]]:
    """The loss of each step, on each process."""
    steps: dict[int, list[str]] = {}
    for rank in range(processes):
        for line in Path(f"{path}.{rank}").read_text().splitlines():
            number, loss = line.split()
            steps.setdefault(int(number), []).append(loss)
    return steps


def last_state(folder: Path) -> dict[str, torch.Tensor]:
    """The tensors of the newest checkpoint."""
    newest = checkpoint.latest(folder)
    assert newest is not None
    return checkpoint.load(newest)[0]


def cell(recipe: str, moment: str, processes: int, images: str, folder: Path) -> dict[str, Any]:
    """One cell of the table; the uninterrupted run is trained if it does not exist yet."""
    reference, trial = folder / f"whole-{recipe}-{processes}", folder / f"cut-{time.monotonic_ns()}"
    losses = Path(f"{reference}-losses")
    if not reference.exists() and not all_finish(processes, recipe, images, reference, losses, None):
        raise RuntimeError(f"{recipe} on {processes} process(es) does not train")
    about = {"recipe": recipe, "moment": moment, "processes": processes}
    if all_finish(processes, recipe, images, trial, Path(f"{trial}-before"), moment):
        return {**about, "killed": False, "equal": False}
    newest = checkpoint.latest(trial)
    first = int(newest.name.removeprefix("step-")) if newest else 0
    if not all_finish(processes, recipe, images, trial, Path(f"{trial}-after"), None):
        return {**about, "killed": True, "resumed_at": first, "equal": False}
    expected = losses_in(losses, processes)
    actual = losses_in(Path(f"{trial}-after"), processes)
    steps = [step for step in sorted(expected) if step >= first][:STEPS]
    ours, theirs = last_state(trial), last_state(reference)
    tensors = ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    equal = tensors and all(actual.get(step) == expected[step] for step in steps)
    return {**about, "killed": True, "resumed_at": first, "steps": len(steps), "equal": equal}
