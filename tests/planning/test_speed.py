"""The speed that a plan measures: what surrounds the steps, what small views cost, and that it leaves no trace."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from known_pace import Pace, noise
from small_runs import in_groups, small_run

import vantage
from vantage.data import Batch, Source
from vantage.encoders import Convolutions
from vantage.planning import plan
from vantage.planning import speed as measuring
from vantage.planning.plan import make_plan
from vantage.planning.sizing import PlanOptions
from vantage.planning.speed import Speed, fixed_share, measure_speed
from vantage.training.loop import resume, train
from vantage.training.run import Data, Hardware, Run
from vantage.training.session import Session
from vantage.views import ProgressiveResizing


def test_a_plan_knows_what_small_views_cost() -> None:
    assert fixed_share(0.325, 1.0, 0.25) == pytest.approx(0.1)
    assert (fixed_share(0.2, 1.0, 0.25), fixed_share(1.2, 1.0, 0.25)) == (0.0, 1.0)

    def measure(run: Run, source: Source, seconds: float = 2.0) -> Speed:
        return replace(Pace()(run, source, seconds), fixed=0.456)

    run = plan(noise(1_000), 5.0, measure=measure)
    assert run.resizing is not None and run.resizing.fixed == 0.46
    chosen = {"resizing": ProgressiveResizing((20,), (0.5,))}
    options = PlanOptions(changes=lambda run: chosen)
    assert make_plan(noise(1_000), 5.0, options, measure=measure).run.resizing == chosen["resizing"]


def test_a_share_of_the_batch_has_a_share_of_its_groups(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two images in each of four groups, on two devices: four images in four groups were refused."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run = replace(in_groups(small_run("moco_v2", ""), 4), batch_size=8, hardware=Hardware("cpu", devices=2))
    for accumulate in (1, 2):
        assert measure_speed(replace(run, accumulate=accumulate), noise(48, 16), 0.02).step > 0


@pytest.mark.parametrize("recipe", ["interclr", "local_aggregation", "cmc"])
def test_what_surrounds_the_steps_is_measured_too(recipe: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run = small_run(recipe, "")
    speed = measure_speed(run, noise(48, 16), 0.02)
    assert 0 < speed.step < 60 and 0 < speed.epoch and 0 < speed.start
    assert speed.seconds(run, 48) == speed.start + 3 * (6 * speed.step + speed.epoch) and speed.fixed is None
    growing = measure_speed(replace(run, resizing=ProgressiveResizing((12,), (0.5,))), noise(48, 16), 0.02)
    assert growing.fixed is not None and 0 <= growing.fixed <= 1


@pytest.mark.slow
def test_the_default_is_measured_and_trains_and_resumes_to_the_same_bits(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    source, before = noise(48, 16), torch.get_rng_state()
    changes = {"hardware": Hardware("cpu", precision="32-true"), "epochs": 2, "batch_size": 8}
    run = plan(source, 1.0, backbone=Convolutions((4, 6)), size=16, changes=changes)
    assert torch.equal(torch.get_rng_state(), before)
    assert (run.epochs, run.batch_size, run.data) == (2, 8, Data())
    train(run, tmp_path / "whole", source=source)
    train(replace(run, epochs=2), tmp_path / "again", source=source)
    assert resume(tmp_path / "again", source=source).finished
    ends = [vantage.load(tmp_path / name).digest() for name in ("whole", "again")]
    assert ends[0] == ends[1]


def clocked(seconds: list[float], device: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Session, list[int]]:
    """A session whose steps take these seconds, the last of them again and again; and the steps that it took."""
    now, taken = 0.0, list[int]()

    def step(batch: Batch, number: int) -> torch.Tensor:
        nonlocal now
        now += seconds[min(number, len(seconds) - 1)]
        taken.append(number)
        return torch.zeros(())

    monkeypatch.setattr(measuring.time, "monotonic", lambda: now)
    monkeypatch.setattr(Batch, "to", lambda batch, _: batch)
    session = Session.__new__(Session)
    session.step, session.fabric = step, SimpleNamespace(device=torch.device(device))  # pyright: ignore
    return session, taken


BATCHES = [Batch(torch.arange(1), ())] * 1000


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_slow_first_step_on_a_gpu_is_not_the_speed(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """There it chooses kernels and records them, which takes far longer than a step. On a CPU it is a slow network."""
    session, _ = clocked([3.0, 0.01], device, monkeypatch)
    usual, extra = measuring._step(session, iter(BATCHES), 0.5, 1.0, 0)
    assert (usual, extra) == pytest.approx((3.0, 0.0) if device == "cpu" else (0.01, 2.99))


@pytest.mark.parametrize(
    ("step", "steps"), [(0.01, 1 + 13 + 50), (0.2, 1 + 3), (0.4, 1 + 2), (0.6, 1 + 1), (1.1, 1)], ids=str
)
def test_long_steps_are_few(step: float, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one second, half is for this size of views, and an eighth of a second for getting warm."""
    session, taken = clocked([step], "cpu", monkeypatch)
    usual, extra = measuring._step(session, iter(BATCHES), 1.0, 0.5, 0)
    assert usual == pytest.approx(step) and abs(extra) < 1e-9 and abs(len(taken) - steps) <= (step == 0.01)
