"""Recorded steps give the losses, weights and memories of steps whose operations start one by one."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from small_runs import small_run, write_images
from torch import Tensor

from vantage.progress import QuietProgress
from vantage.recipes import ring_moco
from vantage.training.computing import cuda_graphs
from vantage.training.computing.cuda_graphs import can_record, record_networks
from vantage.training.computing.launch import launch
from vantage.training.images import open_images
from vantage.training.run import Hardware, Run
from vantage.training.session import Session
from vantage.training.start.first_rows import begin
from vantage.views import ProgressiveResizing

RECIPES = ["simclr", "moco_v2", "jcl", "infomin", "ring_moco", "cmc", "interclr", "everything"]
CUDA = torch.device("cuda")


def session_of(run: Run) -> Session:
    fabric, run = launch(run, QuietProgress())
    session = Session(run, fabric, open_images(run.data)[0])
    begin(session.learner, run, session.source, QuietProgress())
    return session


def train(session: Session, steps: int = 12) -> list[float]:
    """The losses of the first steps, over two epochs."""
    losses: list[float] = []
    while len(losses) < steps:
        for batch in session.feed.batches(len(losses) // session.feed.steps, 0):
            losses.append(float(session.step(batch.to(session.fabric.device), len(losses))))
    return losses


def state_of(session: Session) -> dict[str, Tensor]:
    return {name: value.float().cpu() for name, value in session.learner.state_dict().items()}


class Recorder:
    """Stands in for `capture` on a machine without a CUDA device: what repeats some work does it again, and copies its
    results to the same places."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, work: Callable[[], list[Tensor]], pool: Any) -> tuple[Callable[[], None], list[Tensor], Any]:
        results = list(work())
        self.times += 1

        def repeat() -> None:
            with torch.enable_grad():  # which is off inside an autograd function
                values = list(work())
            for place, value in zip(results, values, strict=True):
                place.detach().copy_(value.detach())

        return repeat, results, pool


def recorded_session(run: Run) -> Session:
    """A session on the CPU whose passes are recorded by the stand-in."""
    session = session_of(run)
    record_networks(session.learner)
    return session


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The stand-in, in place."""

    def warm(work: Callable[[], None]) -> None:
        work()
        torch.rand(1)

    recorder = Recorder()
    monkeypatch.setattr(cuda_graphs, "capture", recorder)
    monkeypatch.setattr(cuda_graphs, "warm", warm)
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())
    monkeypatch.setattr(torch.cuda, "get_rng_state", torch.get_rng_state)
    monkeypatch.setattr(torch.cuda, "set_rng_state", torch.set_rng_state)
    return recorder


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_is_recorded_is_the_step(tmp_path, recorder, recipe):
    """Recording leaves running statistics and random numbers as they were."""
    run = small_run(recipe, write_images(tmp_path / "images.npz"))
    plain, recorded = session_of(run), recorded_session(run)
    assert train(recorded) == train(plain)
    assert all(torch.equal(value, state_of(plain)[name]) for name, value in state_of(recorded).items())
    assert recorder.times == 2, "forward and backward, once"


def test_each_size_of_views_is_recorded_once(tmp_path, recorder):
    images = write_images(tmp_path / "images.npz")
    run = replace(small_run("moco_v2", images), resizing=ProgressiveResizing((8, 12)))
    assert train(recorded_session(run)) == train(session_of(run))
    assert recorder.times == 4


def test_a_step_that_cannot_be_recorded_is_computed_all_the_same(tmp_path, monkeypatch, recorder):
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors …")

    run = small_run("moco_v2", write_images(tmp_path / "images.npz"))
    session = recorded_session(run)
    monkeypatch.setattr(cuda_graphs, "capture", refuse)
    with pytest.warns(UserWarning, match="no CUDA graph.*: operation not permitted when stream is capturing$"):
        losses = train(session)  # once: the second step does not try again
    assert losses == train(session_of(run))


def test_what_is_recorded() -> None:
    """One process, without accumulation, in any recipe."""
    run = ring_moco(32)
    assert can_record(run, CUDA) and not can_record(run, torch.device("cpu"))
    assert not can_record(replace(run, accumulate=2), CUDA)
    assert not can_record(replace(run, hardware=Hardware(precision="64-true")), CUDA)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_graph_computes_what_the_step_computes(tmp_path, recipe, precision):
    run = small_run(recipe, write_images(tmp_path / "images.npz"))
    hardware = replace(run.hardware, accelerator="cuda", precision=precision)
    plain, graph = (session_of(replace(run, hardware=replace(hardware, graphs=on))) for on in (False, True))
    torch.testing.assert_close(train(graph), train(plain), rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(state_of(graph), state_of(plain), rtol=2e-2, atol=2e-2)


@pytest.mark.gpu
def test_graphs_of_several_sizes_and_a_warm_start(tmp_path):
    """Views that grow, with a memory that is filled between two graphs."""
    images = write_images(tmp_path / "images.npz")
    run = replace(small_run("moco_v2", images), resizing=ProgressiveResizing((8, 12)))
    hardware = replace(run.hardware, accelerator="cuda", precision="32-true")
    plain, graph = (session_of(replace(run, hardware=replace(hardware, graphs=on))) for on in (False, True))
    torch.testing.assert_close(train(graph), train(plain), rtol=2e-3, atol=2e-3)
