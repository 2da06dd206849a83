"""The example in one file gives the losses of the recipe, and runs by itself."""

import importlib.util
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch.testing import assert_close

import vantage
from vantage import draws
from vantage.encoders import Momentum, SplitBatchNorm
from vantage.learner import Learner

BATCH, SIDE, KEYS, EPOCHS, STEPS_PER_EPOCH = 12, 8, 30, 4, 3
GROUPS = 2  # of six images of 8 pixels: BatchNorm over two numbers, as 8 groups would make it, is all but a sign


@pytest.fixture(scope="module")
def example(repository: Path) -> ModuleType:
    """The example as a module, with fewer groups, as the batch is small."""
    spec = importlib.util.spec_from_file_location("moco_in_one_file", repository / "examples" / "moco_in_one_file.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.SplitBatchNorm.groups = GROUPS
    return module


def views(step: int) -> list[torch.Tensor]:
    numbers = np.random.default_rng(step).standard_normal((2, BATCH, 3, SIDE, SIDE))
    return list(torch.from_numpy(numbers))


def recipe_losses(learner: Learner, run: vantage.Run, steps: int) -> list[float]:
    optimizer, losses = run.optimizer.build(learner), []
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = run.learning_rate(step, STEPS_PER_EPOCH, EPOCHS)
        learner.before_step(step)
        result = learner(views(step), torch.arange(BATCH), step)
        optimizer.zero_grad()
        result.loss.backward()
        optimizer.step()
        learner.after_step([result.fresh], step)
        losses.append(float(result.loss.detach()))
    return losses


def example_losses(example: ModuleType, learner: Learner, run: vantage.Run, steps: int) -> list[float]:
    network = example.encoder().double()
    weights = learner.networks.network.state_dict()  # pyright: ignore
    network.load_state_dict({n.removeprefix("backbone.").replace("head.", "fc."): w for n, w in weights.items()})
    moco = example.MoCo(network, keys=KEYS, width=128, momentum=0.99, temperature=0.1).double()
    moco.queue.copy_(learner.store(0).vector)
    optimizer = torch.optim.SGD(moco.query.parameters(), lr=0.0, momentum=0.9, weight_decay=5e-4)
    losses = []
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = example.learning_rate(step // STEPS_PER_EPOCH, EPOCHS, base=0.03)
        order = torch.Generator().manual_seed(draws.mix(run.seed, step, 1))
        loss, keys = moco(*views(step), torch.randperm(BATCH, generator=order))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        moco.remember(keys)
        losses.append(float(loss.detach()))
    return losses


@pytest.mark.slow
def test_ten_losses_equal_those_of_the_recipe(example: ModuleType):
    """Same weights, same views, same order of keys: ten steps in float64, of which four wrap the queue."""
    run = vantage.moco_v2(size=32)
    assert isinstance(run.encoders, Momentum)
    encoder = replace(run.encoders.encoder, normalization=SplitBatchNorm(GROUPS))
    encoders = replace(run.encoders, encoder=encoder)
    run = replace(run, encoders=encoders, branches=(replace(run.branches[0], memory=vantage.Queue(KEYS)),))
    learner = Learner(run.encoders, run.branches, images=100, seed=run.seed).double()
    theirs = example_losses(example, learner, run, 10)
    ours = recipe_losses(learner, run, 10)
    assert len(set(ours)) == 10
    assert_close(ours, theirs, rtol=0, atol=1e-9)


def test_it_uses_no_part_of_the_library(repository: Path):
    text = (repository / "examples" / "moco_in_one_file.py").read_text()
    assert "import vantage" not in text and "from vantage" not in text


@pytest.mark.slow
def test_it_runs_by_itself(repository: Path, tmp_path: Path):
    images = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=images)
    command = [sys.executable, repository / "examples" / "moco_in_one_file.py", "--npz", tmp_path / "images.npz"]
    process = subprocess.run(
        [*command, "--epochs", "1", "--batch-size", "16", "--out", tmp_path / "weights.pt", "--device", "cpu"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.startswith("epoch 1: loss ")
    weights = torch.load(tmp_path / "weights.pt", weights_only=True)
    assert "conv1.weight" in weights and all(torch.isfinite(value).all() for value in weights.values())
