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
from vantage.recipes import moco_v2, ring_moco
from vantage.step import Step
from vantage.training.computing import cuda_graphs
from vantage.training.computing.cuda_graphs import RecordedSteps, can_be_recorded
from vantage.training.computing.launch import launch
from vantage.training.images import open_images
from vantage.training.run import Hardware, Run
from vantage.training.session import Session
from vantage.views import ProgressiveResizing

RECIPES = ["simclr", "moco_v2", "jcl", "infomin", "hcl", "instance_discrimination_full"]
CUDA = torch.device("cuda")


def session_of(run: Run) -> Session:
    fabric, run = launch(run, QuietProgress())
    return Session(run, fabric, open_images(run.data)[0])


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
    """Stands in for `record` on a machine without a CUDA device: it computes the step a few times, and what repeats it
    computes it again, to the same places."""

    def __init__(self, sessions: list[Session]) -> None:
        self.sessions, self.times = sessions, 0

    def __call__(self, learn: Callable[[], Step], pool: Any) -> tuple[Callable[[], None], Step, Any]:
        for _ in range(3):
            learn()
            torch.rand(1)
        result = learn()
        weights = [weight for weight in self.sessions[-1].learner.parameters() if weight.grad is not None]
        places = [weight.grad for weight in weights]
        self.times += 1

        def repeat() -> None:
            copy(result, learn())
            for weight, place in zip(weights, places, strict=True):
                place.copy_(weight.grad)

        return repeat, result, pool


def copy(into: Any, values: Any) -> None:
    """Overwrite every tensor of a step."""
    if isinstance(into, Tensor):
        into.copy_(values)
        return
    pairs = (
        zip(into.values(), values.values(), strict=True) if isinstance(into, dict) else zip(into, values, strict=True)
    )
    for place, value in pairs:
        copy(place, value)


def recorded_session(run: Run, recorder: Recorder) -> Session:
    """A session on the CPU whose steps are recorded by the stand-in."""
    session = session_of(run)
    session.recorded = RecordedSteps(session.learner, nullcontext)
    recorder.sessions.append(session)
    return session


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """The stand-in, in place."""
    recorder = Recorder([])
    monkeypatch.setattr(cuda_graphs, "record", recorder)
    monkeypatch.setattr(torch.cuda, "get_rng_state", torch.get_rng_state)
    monkeypatch.setattr(torch.cuda, "set_rng_state", torch.set_rng_state)
    return recorder


@pytest.mark.parametrize("recipe", RECIPES)
def test_what_is_recorded_is_the_step(tmp_path, recorder, recipe):
    """Recording leaves running statistics, memories and random numbers as they were."""
    run = small_run(recipe, write_images(tmp_path / "images.npz"))
    plain, recorded = session_of(run), recorded_session(run, recorder)
    assert train(recorded) == train(plain)
    assert all(torch.equal(value, state_of(plain)[name]) for name, value in state_of(recorded).items())
    assert recorder.times == 1


def test_each_size_of_views_is_recorded_once(tmp_path, recorder):
    images = write_images(tmp_path / "images.npz")
    run = replace(small_run("moco_v2", images), resizing=ProgressiveResizing((8, 12)))
    assert train(recorded_session(run, recorder)) == train(session_of(run))
    assert recorder.times == 2


def test_a_memory_that_moved_is_recorded_again(tmp_path, recorder):
    """A graph reads fixed addresses."""
    session = recorded_session(small_run("moco_v2", write_images(tmp_path / "images.npz")), recorder)
    train(session, 2)
    store = session.learner.stores["0"]
    store.vector = store.vector.clone()
    train(session, 2)
    assert recorder.times == 2


def test_a_step_that_cannot_be_recorded_is_computed_all_the_same(tmp_path, monkeypatch, recorder):
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors …")

    run = small_run("moco_v2", write_images(tmp_path / "images.npz"))
    session = recorded_session(run, recorder)
    monkeypatch.setattr(cuda_graphs, "record", refuse)
    with pytest.warns(UserWarning, match="cannot be a CUDA graph.*: operation not permitted when stream is capturing$"):
        losses = train(session)  # once: the second step does not try again
    assert losses == train(session_of(run))


def test_only_steps_that_are_always_the_same_are_recorded():
    run = moco_v2(32)
    assert can_be_recorded(run, CUDA)
    assert not can_be_recorded(run, torch.device("cpu"))
    assert not can_be_recorded(replace(run, accumulate=2), CUDA)
    assert not can_be_recorded(ring_moco(32), CUDA)
    assert not can_be_recorded(replace(run, hardware=Hardware(precision="16-mixed")), CUDA)


@pytest.mark.gpu
@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_a_graph_computes_what_the_step_computes(tmp_path, recipe, precision):
    run = small_run(recipe, write_images(tmp_path / "images.npz"))
    hardware = replace(run.hardware, accelerator="cuda", precision=precision)
    plain, graph = (session_of(replace(run, hardware=replace(hardware, graphs=on))) for on in (False, True))
    assert plain.recorded is None and graph.recorded is not None
    torch.testing.assert_close(train(graph), train(plain), rtol=2e-3, atol=2e-3)
    assert None not in graph.recorded.recorded.values(), "it was recorded"
    torch.testing.assert_close(state_of(graph), state_of(plain), rtol=2e-2, atol=2e-2)


@pytest.mark.gpu
def test_graphs_of_several_sizes_and_a_warm_start(tmp_path):
    """Views that grow, with a memory that is filled between two graphs."""
    images = write_images(tmp_path / "images.npz")
    run = replace(small_run("moco_v2", images), resizing=ProgressiveResizing((8, 12)))
    hardware = replace(run.hardware, accelerator="cuda", precision="32-true")
    plain, graph = (session_of(replace(run, hardware=replace(hardware, graphs=on))) for on in (False, True))
    torch.testing.assert_close(train(graph), train(plain), rtol=2e-3, atol=2e-3)
    assert graph.recorded is not None and len(graph.recorded.recorded) == 2
