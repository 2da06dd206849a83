"""What the tests of warm starts share."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from kill_moments import die
from small_runs import small_run
from torch import Tensor

from vantage.composition.codec import allowing
from vantage.encoders import LinearHead, Shared
from vantage.training.folder import checkpoint
from vantage.training.loop import train
from vantage.training.run import Monitoring, Run
from vantage.training.session import Session

Base = Callable[[str], tuple[Path, dict[str, Tensor]]]


def small(recipe: str, folder: Path) -> Run:
    """A recipe for one epoch of six steps."""
    run = small_run(recipe, str(folder / "images.npz"), epochs=1)
    return replace(run, monitoring=Monitoring(checkpoint_minutes=10.0))


def linear(run: Run) -> Run:
    """The run with the linear head of instance discrimination."""
    assert isinstance(run.encoders, Shared)
    return replace(run, encoders=replace(run.encoders, encoder=replace(run.encoders.encoder, head=LinearHead(128))))


def tensors(run: Path) -> dict[str, Tensor]:
    newest = checkpoint.latest(run)
    assert newest is not None
    return checkpoint.load(newest)[0]


def start(run: Run, init: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The state from which a run starts, and what its provenance says of each part."""

    class Stopped(Exception):
        pass

    def stops(*_: object) -> None:
        raise Stopped

    with monkeypatch.context() as patch, pytest.raises(Stopped):
        patch.setattr(Session, "step", stops)
        train(run, out, init=init)
    record = json.loads((out / "provenance.json").read_text())[0]["init"]
    newest = checkpoint.latest(init)
    assert newest is not None
    assert record["from"] == str(newest) and record["sha256"] == checkpoint.digest_of(newest) and record["step"] == 6
    assert int(checkpoint.load(out / "checkpoint" / "step-000000000")[1]["step"]) == 0
    return tensors(out), record["parts"]


def train_until_killed(run: Run, out: Path, init: Path, file: str) -> None:
    """Train in a process that is killed when a file of the run is complete and about to get its name."""
    replace_file = Path.replace

    def replace_or_die(self: Path, target: Path) -> Path:
        if target.name == file:
            die()
        return replace_file(self, target)

    with pytest.MonkeyPatch.context() as patch, allowing("tiny"):
        patch.setattr(Path, "replace", replace_or_die)
        train(run, out, init=init)


def below(prefix: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}


def equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> bool:
    return len(ours) > 0 and ours.keys() == theirs.keys() and all(torch.equal(ours[n], theirs[n]) for n in ours)


def slow(*values: object) -> Any:
    return pytest.param(*values, marks=pytest.mark.slow)
