"""The number of processes may change between a stop and the next start."""

import json
from pathlib import Path

import pytest
import torch
import world_sizes
from torch import Tensor
from torch.testing import assert_close

from vantage.training.folder import checkpoint
from vantage.training.loop import train


@pytest.mark.slow
def test_a_run_goes_on_with_any_number_of_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """1, 2, 4, 1: the losses, weights and stores of a run that stayed on one, to 1e-6."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "staying").mkdir()
    (tmp_path / "traveling").mkdir()
    world_sizes.travel(tmp_path / "traveling")
    for name, run in world_sizes.runs(tmp_path / "staying").items():
        train(run, tmp_path / "staying" / name)
        (losses, state), (ours, our_state) = (ending(tmp_path / place / name) for place in ("staying", "traveling"))
        assert len(losses) == 4 and len(set(losses)) == 4
        assert_close(ours, losses, rtol=0, atol=1e-6, msg=lambda text, name=name: f"{name}: {text}")
        apart = [path for path in state if not path.startswith("monitor.") and _differ(our_state[path], state[path])]
        assert apart == [], f"{name}: {apart}"


def _differ(one: Tensor, other: Tensor) -> bool:
    return not torch.allclose(one, other, rtol=0, atol=1e-6)


def ending(folder: Path) -> tuple[list[float], dict]:
    """The losses of all epochs, and the tensors at the end."""
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    newest = checkpoint.latest(folder)
    assert newest is not None
    return [row["loss"] for row in rows], checkpoint.load(newest)[0]
