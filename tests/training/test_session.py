"""One step of a run, and what a checkpoint of it brings back."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sessions import session
from small_runs import IMAGES, SIZE, small_run, write_images
from torch import Tensor

from vantage.branch import Branch
from vantage.composition.codec import allowing
from vantage.data.sources.arrays import Arrays
from vantage.errors import UserError
from vantage.estimators import InfoNCE
from vantage.machine.devices import has_bf16
from vantage.progress import QuietProgress
from vantage.training.computing.launch import launch
from vantage.training.folder import checkpoint
from vantage.training.folder.slots import optimizer_state
from vantage.training.run import Hardware
from vantage.training.session import Session
from vantage.views import ProgressiveResizing


@pytest.fixture
def images_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Images, a cache of the test's own, and leave to read settings that name the tests' backbone."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    with allowing("tiny"):
        yield write_images(tmp_path / "images.npz")


def steps(one: Session, first: int, last: int) -> list[Tensor]:
    """The losses of some steps of the first epoch."""
    batches = one.feed.batches(0, first)
    return [one.step(batch, step) for step, batch in zip(range(first, last), batches, strict=False)]


def state(one: Session) -> dict[str, Tensor]:
    """Everything that a session keeps, by copies."""
    slots, _ = optimizer_state(one.optimizer.optimizer)
    parts = {**one.learner.state_dict(), **one.monitor.state_dict(prefix="monitor."), **slots}
    return {name: tensor.clone() for name, tensor in parts.items()}


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    assert ours.keys() == theirs.keys()
    assert [name for name, tensor in ours.items() if not torch.equal(tensor, theirs[name])] == []


@pytest.mark.parametrize("recipe", ["moco_v2", "interclr", "instance_discrimination_nce", "cmc"])
def test_what_is_saved_comes_back_and_goes_on_alike(recipe: str, images_path: str, tmp_path: Path):
    run = small_run(recipe, images_path)
    one = session(run)
    steps(one, 0, 3)
    one.save(tmp_path, 3, clock=12.5)
    before = state(one)
    newest = checkpoint.latest(tmp_path)
    assert newest is not None
    torch.manual_seed(99)  # whatever the generator did meanwhile
    other = session(run)
    assert any(not torch.equal(tensor, before[name]) for name, tensor in other.learner.state_dict().items())
    assert other.restore(newest) == (3, 12.5)
    assert_same(state(other), before)
    ours, theirs = steps(one, 3, 6), steps(other, 3, 6)
    assert torch.equal(torch.stack(ours), torch.stack(theirs)) and len(ours) == 3
    assert_same(state(one), state(other))
    assert not torch.equal(state(one)["monitor.batches"], before["monitor.batches"])


def test_a_checkpoint_of_other_settings_is_refused(images_path: str, tmp_path: Path):
    run = small_run("moco_v2", images_path)
    session(run).save(tmp_path, 0, 0.0)
    newest = checkpoint.latest(tmp_path)
    assert newest is not None
    (branch,) = run.branches
    warmer = replace(run, branches=(replace(branch, estimator=InfoNCE(0.5)),))
    with pytest.raises(UserError, match="temperature"):
        session(warmer).restore(newest)
    assert session(replace(run, monitoring=replace(run.monitoring, log_every=7))).restore(newest) == (0, 0.0)


def test_a_checkpoint_of_another_precision_is_taken_without_its_scaler(images_path: str, tmp_path: Path):
    from lightning_fabric.plugins.precision import MixedPrecision

    run = small_run("moco_v2", images_path)
    one, other = session(run), session(run)
    one.save(tmp_path, 0, 0.0)
    newest = checkpoint.latest(tmp_path)
    assert newest is not None
    other.fabric.strategy.precision = MixedPrecision("16-mixed", "cpu")
    assert other.restore(newest) == (0, 0.0)
    other.save(tmp_path, 1, 0.0)  # with a scaler
    newest = checkpoint.latest(tmp_path)
    assert newest is not None and one.restore(newest) == (1, 0.0)


def test_a_checkpoint_of_another_data_set_is_refused(images_path: str, tmp_path: Path):
    run = small_run("instance_discrimination", images_path)
    session(run).save(tmp_path, 0, 0.0)
    newest = checkpoint.latest(tmp_path)
    assert newest is not None
    fabric, run = launch(run, QuietProgress())
    fewer = Arrays(torch.zeros(IMAGES - 8, SIZE, SIZE, 3, dtype=torch.uint8).numpy(), None, "fewer")
    with pytest.raises(UserError, match="does not fit the settings"):
        Session(run, fabric, fewer).restore(newest)


def test_views_grow_by_the_number_of_the_step_and_so_they_do_after_a_stop(images_path: str, tmp_path: Path):
    run = replace(small_run("simclr", images_path, 2), resizing=ProgressiveResizing((8, 12), (0.25, 0.5)))
    one, sides = session(run), list[int]()
    one.learner.register_forward_pre_hook(lambda learner, arguments: sides.append(arguments[0][0].shape[-1]))
    steps(one, 0, 2)
    one.save(tmp_path, 2, clock=0.0)
    losses, newest = steps(one, 2, 6), checkpoint.latest(tmp_path)
    one.step(next(one.feed.batches(1, 0)), 6)
    assert session(run).work(4) == one.work(4) < 4 / 12  # also before the first step
    assert sides == [8, 8, 8, 12, 12, 12, 16]  # of twelve steps
    other = session(run)
    assert newest is not None and other.restore(newest) == (2, 0.0)
    assert torch.equal(torch.stack(losses), torch.stack(steps(other, 2, 6)))


def test_a_step_takes_the_rate_of_its_number(images_path: str):
    run = small_run("moco_v2", images_path)
    one = session(run)
    assert one.learning_rate(0) != one.learning_rate(15)
    batch = next(iter(one.feed.batches(0, 0)))
    before = {name: weight.clone() for name, weight in one.learner.networks.named_parameters()}
    for step in (0, 15):
        one.step(batch, step)
        assert {group["lr"] for group in one.optimizer.param_groups} == {
            run.learning_rate(step, one.feed.steps, run.epochs)
        }
    assert any(not torch.equal(weight, before[name]) for name, weight in one.learner.networks.named_parameters())


def test_a_step_is_a_function_of_its_number_whatever_was_drawn_before(images_path: str):
    run = small_run("moco_v2", images_path)
    one, other = session(run), session(run)
    assert_same(one.learner.state_dict(), other.learner.state_dict())
    batch = next(iter(one.feed.batches(0, 0)))
    loss = one.step(batch, 4)
    torch.manual_seed(1234)
    other.generator.manual_seed(4321)
    assert torch.equal(loss, other.step(batch, 4))
    assert_same(one.learner.state_dict(), other.learner.state_dict())


def test_branches_that_do_not_fit_are_refused_before_anything_is_built(images_path: str):
    run = small_run("moco_v2", images_path)
    lonely = replace(run, branches=(replace(run.branches[0], keys=(), pool=(1,)),))
    assert isinstance(lonely.branches[0], Branch)
    with pytest.raises(UserError, match="branch 0 cannot work: OtherViews needs the keys of another view"):
        session(lonely)


@pytest.mark.parametrize("fast", [True, False])
def test_without_fast_bfloat16_the_run_computes_in_float32_and_says_so(fast: bool, images_path: str, monkeypatch):
    lines: list[str] = []

    class LineRecorder(QuietProgress):
        def line(self, text: str) -> None:
            lines.append(text)

    monkeypatch.setattr("vantage.training.computing.launch.has_bf16", lambda on_cuda: fast)
    run = replace(small_run("moco_v2", images_path), hardware=Hardware("cpu"))
    hardware = launch(run, LineRecorder())[1].hardware
    assert hardware.precision == ("bf16-mixed" if fast else "32-true")
    assert len(lines) == (0 if fast else 1) and all("32-true" in line for line in lines)
    assert isinstance(has_bf16(False), bool)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
def test_hardware_that_is_not_there_is_refused(images_path: str):
    run = replace(small_run("moco_v2", images_path), hardware=Hardware("cuda", precision="32-true"))
    with pytest.raises(UserError, match="there is no CUDA device here"):
        launch(run, QuietProgress())
