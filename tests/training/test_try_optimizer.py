"""Optimizers of a user's own: tried before the first step, saved with everything they keep, or refused in words."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import small_run, write_images
from torch import Tensor, nn

import vantage
from vantage.errors import UserError
from vantage.training.folder.slots import optimizer_state, restore_optimizer
from vantage.training.loop import resume, train
from vantage.training.start.try_optimizer import build_optimizer


class Averaging(torch.optim.Optimizer):
    """Steps by the mean of the newest gradients, which it keeps in a list, as SOAP and LBFGS keep theirs."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore
        """Move the parameters."""
        for parameter in self.param_groups[0]["params"]:
            slots = self.state[parameter]
            kept = [*slots.get("kept", []), parameter.grad.double()][-3:]
            slots["kept"], slots["facts"] = kept, {"steps": len(kept), 1: (None, parameter.new_ones(2))}
            parameter -= self.param_groups[0]["lr"] * sum(kept) / slots["facts"]["steps"]


class Outside(Averaging):
    """Keeps its newest gradients where torch does not look."""

    def __init__(self, parameters: list[nn.Parameter]) -> None:
        super().__init__(parameters)
        self.kept = dict[Tensor, Tensor]()

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore
        """Move the parameters."""
        for parameter in self.param_groups[0]["params"]:
            self.kept[parameter] = 0.9 * self.kept.get(parameter, torch.zeros_like(parameter)) + parameter.grad
            parameter -= self.param_groups[0]["lr"] * self.kept[parameter]


class Named(Averaging):
    """Keeps something beside its parameters."""

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore
        """Move the parameters."""
        super().step()
        self.state["all"] = {"steps": 1}  # pyright: ignore


class Worded(Averaging):
    """Keeps something that is no number."""

    def step(self, closure: Callable[[], Any] | None = None) -> None:  # pyright: ignore
        """Move the parameters."""
        super().step()
        self.state[self.param_groups[0]["params"][0]]["seen"] = {1, 2}


KINDS: dict[str, Callable[[list[nn.Parameter]], torch.optim.Optimizer]] = {
    "averaging": Averaging,
    "outside": Outside,
    "named": Named,
    "worded": Worded,
    "lbfgs": torch.optim.LBFGS,
    "adafactor": torch.optim.Adafactor,
}


@dataclass(frozen=True)
class Own:
    """A choice of one of these optimizers."""

    kind: str

    def build(self, module: nn.Module, lr: float = 0.0) -> torch.optim.Optimizer:
        """The optimizer."""
        return KINDS[self.kind]([parameter for parameter in module.parameters() if parameter.requires_grad])


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Images, and a cache of the test's own."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    return write_images(tmp_path / "images.npz")


@pytest.mark.slow
def test_an_optimizer_that_keeps_lists_is_saved_and_goes_on_bit_for_bit(path: str, tmp_path: Path) -> None:
    run = replace(small_run("simclr", path, epochs=2), optimizer=Own("averaging"))
    with vantage.allowing(__name__, "tiny"):
        train(run, tmp_path / "whole")
        train(run, tmp_path / "parts")
        newest = sorted((tmp_path / "parts" / "checkpoint").iterdir())[-1]
        for file in newest.iterdir():
            file.unlink()
        newest.rmdir()
        assert resume(tmp_path / "parts", run).finished
        whole, parts = (vantage.load(tmp_path / name) for name in ("whole", "parts"))
    assert whole.digest() == parts.digest()


@pytest.mark.parametrize(
    "kind, message",
    [
        ("lbfgs", "LBFGS.step.* missing 1 required positional argument: 'closure'"),
        (
            "outside",
            "saved and restored, it does not take the step that it would have taken: keep all state",
        ),
        ("named", "it keeps 'all' beside its parameters"),
        ("worded", r"optimizer\.0\.seen: a set cannot be saved"),
    ],
)
def test_one_that_cannot_be_saved_is_refused_before_the_first_step(
    path: str, tmp_path: Path, kind: str, message: str
) -> None:
    run = replace(small_run("simclr", path), optimizer=Own(kind))
    with pytest.raises(UserError, match=f"the optimizer Own cannot be used: .*{message}"):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("kind", ["averaging", "adafactor"])
def test_the_trial_leaves_no_trace(kind: str) -> None:
    module = nn.Linear(3, 2)
    before, chance = module.weight.detach().clone(), torch.random.get_rng_state()
    optimizer = build_optimizer(Own(kind), module)
    assert torch.equal(module.weight, before) and module.weight.grad is None and not optimizer.state
    assert torch.equal(torch.random.get_rng_state(), chance)


def test_nested_state_comes_back_with_its_types() -> None:
    module = nn.Linear(3, 2)
    first, second = (Own("averaging").build(module) for _ in range(2))
    for _ in range(2):
        module(torch.rand(4, 3)).sum().backward()
        first.step()
    restore_optimizer(second, *optimizer_state(first))
    for parameter in module.parameters():
        ours, theirs = first.state[parameter], second.state[parameter]
        assert [kept.dtype for kept in theirs["kept"]] == [torch.float64] * 2
        assert all(map(torch.equal, ours["kept"], theirs["kept"]))
        assert theirs["facts"]["steps"] == 2 and theirs["facts"][1][0] is None
        assert isinstance(theirs["facts"][1], tuple) and torch.equal(ours["facts"][1][1], theirs["facts"][1][1])
