"""What a run has written: its tensors, and its metrics without the clock."""

import json
import subprocess
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import torch
from torch import Tensor

from vantage.training.folder import checkpoint


def state(folder: Path) -> dict[str, Tensor]:
    """Every tensor of the newest checkpoint."""
    newest = checkpoint.latest(folder)
    assert newest is not None
    return checkpoint.load(newest)[0]


def rows(folder: Path) -> list[dict[str, float]]:
    """The metrics without the clock."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{name: value for name, value in row.items() if name != "seconds"} for row in lines]


def assert_equal(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    for name, tensor in ours.items():
        assert torch.equal(tensor, theirs[name]), name


def wait_for_a_checkpoint(folder: Path, process: BaseProcess | subprocess.Popen[bytes], step: int = 1) -> None:
    """Until the run has one of this step or a later one, or ended without."""
    alive = process.is_alive if isinstance(process, BaseProcess) else lambda: process.poll() is None
    while alive() and max((int(path.name[5:14]) for path in folder.glob("checkpoint/step-*")), default=0) < step:
        time.sleep(0.002)
