"""Save and resume, exactly; nothing is pickled.

A checkpoint is a folder with `tensors.safetensors` and `facts.json`. It is written beside the others under a temporary
name, flushed to disk and renamed, so that a kill or a full disk at any moment leaves the older ones intact.
`facts.json` holds the digest of the tensors, so that a truncated or altered file is refused.
"""

import hashlib
import json
import math
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from vantage.composition.names import RENAMED_TENSORS
from vantage.encoders.weights import build_without_numbers, describe_difference
from vantage.errors import UserError
from vantage.storage.files import digest_of_file, flush, not_written

__all__ = [
    "check_fits",
    "copy_on_cpu",
    "complete_checkpoints",
    "digest_of",
    "fill",
    "latest",
    "newest",
    "load",
    "load_network",
    "restoring",
    "save",
]

_TENSORS, _FACTS, _SEAL = "tensors.safetensors", "facts.json", "sha256"
KEEP = 2
"""How many checkpoints are kept: the newest and the one before."""


def save(
    run_folder: Path, step: int, tensors: dict[str, Tensor], facts: dict[str, Any], again: str = "the same command"
) -> Path:
    """Write the checkpoint of `step` under `run_folder`/checkpoint and drop all but the newest two.

    `again` names the command that starts the run again if it has no checkpoint yet, for the message about a full disk.
    Raises `WriteError` if the disk is full or not writable; older checkpoints stay usable.
    """
    folder = run_folder / "checkpoint"
    target, draft, previous = folder / f"step-{step:09d}", folder / f".draft-{step:09d}", folder / ".draft-replaced"
    try:
        for draft_folder in folder.glob(".draft-*"):  # left by a process that was killed while writing
            shutil.rmtree(draft_folder, ignore_errors=True)
        draft.mkdir(parents=True)
        save_file(_separate(tensors), draft / _TENSORS)
        record = {**facts, "step": step, _TENSORS: digest_of_file(draft / _TENSORS)}
        (draft / _FACTS).write_text(json.dumps({**record, _SEAL: _seal(record)}, indent=1, allow_nan=False))
        shutil.copymode(draft / _FACTS, draft / _TENSORS)  # new versions of safetensors hide a file from other users
        for name in (_TENSORS, _FACTS):
            flush(draft / name)
        if target.exists():  # renamed, not deleted: a kill could lose it only in the moment until the next line
            target.rename(previous)
        draft.rename(target)
        flush(folder)
        shutil.rmtree(previous, ignore_errors=True)
    except (OSError, ValueError, SafetensorError) as problem:
        shutil.rmtree(draft, ignore_errors=True)
        newest = latest(run_folder)
        then = f"Free some space and start again at the first step with {again}"
        if newest:
            then = f"{newest.name} is intact; free some space and resume from it"
        raise not_written(f"the checkpoint of step {step}", folder, problem, then) from problem
    for old in complete_checkpoints(run_folder)[:-KEEP]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def copy_on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """A copy of the tensors that later steps do not change, in the layout in which files have them: `save` would
    otherwise copy those in channels-last layout, most of a network, once more."""
    layout = torch.contiguous_format
    return {name: tensor.detach().to("cpu", copy=True, memory_format=layout) for name, tensor in tensors.items()}


def latest(run_folder: Path) -> Path | None:
    """The newest complete checkpoint of a run, or `None`."""
    checkpoints = complete_checkpoints(run_folder)
    return checkpoints[-1] if checkpoints else None


def newest(run_folder: Path) -> Path:
    """The newest complete checkpoint of a run. Raises `UserError` if there is none."""
    path = latest(run_folder)
    if path is None:
        raise UserError(f"{run_folder} holds no checkpoint yet: train first, or let it reach the first one")
    return path


def complete_checkpoints(run_folder: Path) -> list[Path]:
    """The complete checkpoints of a run, the newest last: at most two."""
    return sorted(path for path in (run_folder / "checkpoint").glob("step-*") if (path / _FACTS).is_file())


def load(checkpoint: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors (on the CPU) and facts of a checkpoint. Executes nothing. Raises `UserError` if it is damaged."""
    facts = _facts(checkpoint)
    with _open(checkpoint) as file:
        return {_current_name(name): file.get_tensor(name) for name in file.keys()}, facts


def check_fits(checkpoint: Path, build: Callable[[], nn.Module], prefix: str) -> None:
    """Raises `UserError` unless the built module has the tensors, by name and shape, that a checkpoint has at `prefix`.

    Only the header is read, and the module is built on the meta device, so settings that name a huge network are
    refused before memory is allocated for it.
    """
    with _open(checkpoint) as file:
        shapes = {name: file.get_slice(name).get_shape() for name in file.keys() if name.startswith(prefix)}
    try:
        expected = build_without_numbers(build).state_dict()
        state = {_current_name(name.removeprefix(prefix)): torch.empty(s, device="meta") for name, s in shapes.items()}
        difference = describe_difference(expected, state)
    except UserError:
        raise
    except (RuntimeError, TypeError, ValueError, OverflowError) as problem:  # sizes that no tensor can have
        difference = " ".join(str(problem).split())[:300]
    if difference:
        _facts(checkpoint)  # if it was altered, this reports so instead
        raise _misfit_error(checkpoint, difference)


def load_network(checkpoint: Path, network: nn.Module, prefix: str) -> None:
    """Load the tensors under `prefix` into a module, strictly. Raises `UserError` if they do not fit."""
    _facts(checkpoint)
    with _open(checkpoint) as file:
        names = [name for name in file.keys() if name.startswith(prefix)]
        state = {_current_name(name.removeprefix(prefix)): file.get_tensor(name) for name in names}
    fill(network, state, checkpoint)


def fill(module: nn.Module, state: dict[str, Tensor], checkpoint: Path) -> None:
    """Load a state into a module, strictly. Raises `UserError` naming the checkpoint if names or shapes differ."""
    try:
        module.load_state_dict(state)
    except RuntimeError as problem:
        difference = describe_difference(module.state_dict(), state) or " ".join(str(problem).split())[:300]
        raise _misfit_error(checkpoint, difference) from problem


@contextmanager
def _open(checkpoint: Path) -> Iterator[Any]:
    """The open file of a checkpoint's tensors. Raises `UserError` if it is damaged."""
    try:
        with safe_open(checkpoint / _TENSORS, framework="pt") as file:
            yield file
    except (OSError, SafetensorError) as problem:
        raise _damage_error(checkpoint, str(problem)) from problem


def digest_of(checkpoint: Path) -> str:
    """SHA-256 of a checkpoint's tensors."""
    return digest_of_file(checkpoint / _TENSORS)


def _current_name(name: str) -> str:
    """The current name of a tensor, which an earlier version may have saved under another name."""
    path, dot, last = name.rpartition(".")
    return f"{path}{dot}{RENAMED_TENSORS.get(last, last)}"


@contextmanager
def restoring(checkpoint: Path) -> Iterator[None]:
    """A context that turns the errors of facts that no run wrote into a `UserError`. The seal does not rule such facts
    out, since anyone who can write facts can also seal them."""
    try:
        yield
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError) as problem:
        raise _damage_error(checkpoint, f"its facts are not those of a run: {problem!r}"[:200]) from problem


def _facts(checkpoint: Path) -> dict[str, Any]:
    try:
        facts = json.loads((checkpoint / _FACTS).read_text())
        seal_fits = facts.pop(_SEAL) == _seal(facts)
        intact = facts.pop(_TENSORS) == _digest_of_tensors(checkpoint / _TENSORS)
        has_step = type(facts["step"]) is int and facts["step"] >= 0
        has_seconds = math.isfinite(facts.get("seconds", 0.0))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as problem:
        raise _damage_error(checkpoint, str(problem)) from problem
    if not (seal_fits and intact):
        raise _damage_error(checkpoint, f"{_FACTS if intact else _TENSORS} has been altered")
    if not (has_step and has_seconds):
        raise _damage_error(checkpoint, "its number of steps or of seconds is missing")
    return facts


def _digest_of_tensors(file: Path) -> str:
    """SHA-256 of a file of tensors; empty if the file's length contradicts its header. Such a file is not read, since
    it may be so large that reading it would take days."""
    try:
        with safe_open(file, framework="pt"):
            return digest_of_file(file)
    except SafetensorError:
        return ""


def _seal(facts: dict[str, Any]) -> str:
    """A digest of the facts, the digest of the tensors among them. It reveals disk errors and accidental edits."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _separate(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Each tensor in separate memory on the CPU, since safetensors refuses the shared memory of tied weights."""
    separate, addresses = {}, set()
    for name, tensor in tensors.items():
        tensor = tensor.detach().cpu().contiguous()
        address = tensor.data_ptr()
        separate[name] = tensor.clone() if address in addresses else tensor
        addresses.add(address)
    return separate


def _misfit_error(checkpoint: Path, difference: str) -> UserError:
    return UserError(
        f"{checkpoint} does not fit the settings of its run (another architecture or data set): {difference}"
    )


def _damage_error(checkpoint: Path, problem: str) -> UserError:
    return UserError(
        f"the checkpoint {checkpoint} is damaged ({problem}): delete this folder to fall back to the one before"
    )
