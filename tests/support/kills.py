"""Runs of small networks that are killed at some moment, on one process or several, and resumed. They must end as if
they had never been killed.

    python benchmarks/resume.py

A run is first trained without interruption. The same run is then killed by SIGKILL and resumed by new processes. The
losses of its next ten steps, every tensor of its last checkpoint and the epochs that it keeps are compared with those
of the uninterrupted run.
"""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import small_runs
import torch
import torch.distributed as dist
from kill_moments import KEEPING, MOMENTS

from vantage.composition.codec import allowing
from vantage.memory import ClusteredBank, ReclusteredBank
from vantage.storage.metrics import read_metrics
from vantage.training.folder import checkpoint, kept_epochs
from vantage.training.loop import resume, train
from vantage.training.run import Hardware, Run
from vantage.training.session import Session

EPOCHS, STEPS = 4, 10


def run_of(recipe: str, images: str, processes: int) -> Run:
    """The recipe as small as in other tests, with kNN and clustering after every epoch; every other one is kept."""
    run = small_runs.small_run(recipe, images, EPOCHS)
    run = replace(run, branches=tuple(replace(branch, memory=_often(branch.memory)) for branch in run.branches))
    hardware = Hardware("cpu", devices=processes, precision="32-true")
    return replace(run, hardware=hardware, monitoring=replace(run.monitoring, knn_every=1, keep_every=2))


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
        (MOMENTS | KEEPING)[moment]()
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


def kept_as_in(whole: Path, trial: Path) -> bool:
    """Whether every epoch that a run has kept is one of the uninterrupted run, with all of its files."""
    theirs = kept_epochs.kept_epochs(whole)
    for epoch, folder in kept_epochs.kept_epochs(trial).items():
        files, expected = ({file.relative_to(each) for file in each.rglob("*")} for each in (folder, theirs[epoch]))
        ours, state = last_state(folder), last_state(theirs[epoch])
        rows, expected_rows = ([row["loss"] for row in read_metrics(each)] for each in (folder, theirs[epoch]))
        if (
            files != expected
            or rows != expected_rows
            or not all(torch.equal(ours[name], state[name]) for name in state)
        ):
            return False
    return True


def cell(recipe: str, moment: str, processes: int, images: str, folder: Path) -> dict[str, Any]:
    """One cell of the table; the uninterrupted run is trained if it does not exist yet."""
    reference, trial = folder / f"whole-{recipe}-{processes}", folder / f"cut-{time.monotonic_ns()}"
    losses = Path(f"{reference}-losses")
    if not reference.exists() and not all_finish(processes, recipe, images, reference, losses, None):
        raise RuntimeError(f"{recipe} on {processes} process(es) does not train")
    about = {"recipe": recipe, "moment": moment, "processes": processes}
    if all_finish(processes, recipe, images, trial, Path(f"{trial}-before"), moment):
        return {**about, "killed": False, "equal": False}
    whole_epochs = kept_as_in(reference, trial)
    newest = checkpoint.latest(trial)
    first = int(newest.name.removeprefix("step-")) if newest else 0
    if not all_finish(processes, recipe, images, trial, Path(f"{trial}-after"), None):
        return {**about, "killed": True, "resumed_at": first, "equal": False}
    expected = losses_in(losses, processes)
    actual = losses_in(Path(f"{trial}-after"), processes)
    steps = [step for step in sorted(expected) if step >= first][:STEPS]
    ours, theirs = last_state(trial), last_state(reference)
    tensors = ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    kept = [list(kept_epochs.kept_epochs(folder)) for folder in (reference, trial)]
    whole_epochs = whole_epochs and kept[0] == kept[1] == [2, EPOCHS] and kept_as_in(reference, trial)
    equal = whole_epochs and tensors and all(actual.get(step) == expected[step] for step in steps)
    return {**about, "killed": True, "resumed_at": first, "steps": len(steps), "equal": equal}
