"""Runs of small networks that are killed at some moment, on one process or several, and resumed. They must end as if
they had never been killed.

    python benchmarks/resume.py

A run is first trained without interruption. The same run is then killed by SIGKILL and resumed by new processes. The
losses of its next ten steps, every tensor of its last checkpoint and the epochs that it keeps are compared with those
of the uninterrupted run. In a `cell` a run is killed once. In a `chain` one run is killed at all moments in turn, in
half the time.
"""

import itertools
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import small_runs
import torch
import torch.distributed as dist
from kill_moments import IN_TURN, KEEPING, MOMENTS

from vantage.composition.codec import allowing
from vantage.composition.fitting import everywhere
from vantage.memory import ClusteredBank, ReclusteredBank
from vantage.storage.metrics import read_metrics
from vantage.training.folder import checkpoint, kept_epochs
from vantage.training.loop import resume, train
from vantage.training.run import Hardware, Run
from vantage.training.session import Session

EPOCHS, STEPS = 4, 10

SHARDED = "_sharded"
"""What the name of a recipe ends with if its banks are sharded."""


def run_of(recipe: str, images: str, processes: int) -> Run:
    """The recipe as small as in other tests, with kNN and clustering after every epoch; every other one is kept."""
    run = small_runs.small_run(recipe.removesuffix(SHARDED), images, EPOCHS)
    run = replace(run, branches=tuple(replace(branch, memory=_often(branch.memory)) for branch in run.branches))
    if recipe.endswith(SHARDED):
        run = replace(run, branches=everywhere(run.branches, _in_shards))
    hardware = Hardware("cpu", devices=processes, precision="32-true")
    return replace(run, hardware=hardware, monitoring=replace(run.monitoring, knn_every=1, keep_every=2))


def _often(memory: Any) -> Any:
    if isinstance(memory, ClusteredBank):
        return replace(memory, refresh_every=1, first=1)
    return replace(memory, first=1) if isinstance(memory, ReclusteredBank) else memory


def _in_shards(part: Any) -> Any:
    return replace(part, sharded=True) if hasattr(part, "sharded") else part


def moments_of(recipe: str) -> list[str]:
    """The moments that a run of the recipe has."""
    memories = [branch.memory for branch in run_of(recipe, "", 1).branches]
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
        for number, loss in losses_of(path, rank):
            steps.setdefault(number, []).append(loss)
    return steps


def losses_of(path: Path, rank: int) -> list[tuple[int, str]]:
    """The steps that one process has taken, each with its loss."""
    file = Path(f"{path}.{rank}")
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    return [(int(number), loss) for number, loss in lines]


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
    reference, losses = uninterrupted(recipe, processes, images, folder)
    trial = folder / f"cut-{time.monotonic_ns()}"
    about = {"recipe": recipe, "moment": moment, "processes": processes}
    if all_finish(processes, recipe, images, trial, Path(f"{trial}-before"), moment):
        return {**about, "killed": False, "equal": False}
    whole_epochs = kept_as_in(reference, trial)
    first = newest_step(trial)
    if not all_finish(processes, recipe, images, trial, Path(f"{trial}-after"), None):
        return {**about, "killed": True, "resumed_at": first, "equal": False}
    expected = losses_in(losses, processes)
    actual = losses_in(Path(f"{trial}-after"), processes)
    steps = [step for step in sorted(expected) if step >= first][:STEPS]
    equal = whole_epochs and ends_as(reference, trial) and all(actual.get(step) == expected[step] for step in steps)
    return {**about, "killed": True, "resumed_at": first, "steps": len(steps), "equal": equal}


def chain(recipe: str, processes: int, images: str, folder: Path) -> list[dict[str, Any]]:
    """The cells of a recipe at all of its moments, from one run that is killed at one after another."""
    reference, losses = uninterrupted(recipe, processes, images, folder)
    trial, rows = folder / f"chain-{time.monotonic_ns()}", list[dict[str, Any]]()
    moments = [moment for moment in IN_TURN if moment in moments_of(recipe)]
    notes = [Path(f"{trial}-{number}") for number in range(len(moments) + 1)]
    for moment, note in zip(moments, notes, strict=False):
        killed = not all_finish(processes, recipe, images, trial, note, moment)
        rows.append({"recipe": recipe, "moment": moment, "processes": processes, "killed": killed})
        rows[-1] |= {"resumed_at": newest_step(trial), "steps": 0, "equal": kept_as_in(reference, trial)}
    ends = all_finish(processes, recipe, images, trial, notes[-1], None) and ends_as(reference, trial)
    expected = losses_in(losses, processes)
    for number, row in enumerate(rows, 1):
        first, pairs = row["resumed_at"], list[tuple[int, bool]]()
        for note, rank in itertools.product(notes[number:], range(processes)):
            pairs += [(step, loss == expected[step][rank]) for step, loss in losses_of(note, rank)]
        pairs = [(step, same) for step, same in pairs if first <= step < first + STEPS]
        row["steps"] = len({step for step, _ in pairs})
        row["equal"] = row["killed"] and row["equal"] and ends and all(same for _, same in pairs)
    return rows


def uninterrupted(recipe: str, processes: int, images: str, folder: Path) -> tuple[Path, Path]:
    """The uninterrupted run, which is trained if it does not exist yet, and where its losses are."""
    reference = folder / f"whole-{recipe}-{processes}"
    losses = Path(f"{reference}-losses")
    if not reference.exists() and not all_finish(processes, recipe, images, reference, losses, None):
        raise RuntimeError(f"{recipe} on {processes} process(es) does not train")
    return reference, losses


def newest_step(folder: Path) -> int:
    """The step of the newest checkpoint; 0 if there is none."""
    newest = checkpoint.latest(folder)
    return int(newest.name.removeprefix("step-")) if newest else 0


def ends_as(reference: Path, trial: Path) -> bool:
    """Whether both runs have the same tensors at the end and have kept the same epochs."""
    ours, theirs = last_state(trial), last_state(reference)
    tensors = ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)
    kept = [list(kept_epochs.kept_epochs(folder)) for folder in (reference, trial)]
    return tensors and kept[0] == kept[1] == [2, EPOCHS] and kept_as_in(reference, trial)
