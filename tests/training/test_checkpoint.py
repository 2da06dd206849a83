"""Save and resume, exactly; damage is refused, interruptions leave the older ones whole."""

import errno
import json
import math
import os
import stat
from pathlib import Path

import pytest
import torch
from torch import nn

from vantage.errors import UserError
from vantage.training.folder import checkpoint
from vantage.training.folder.slots import optimizer_state, restore_optimizer


def tensors(step: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(step)
    return {
        "a.weight": torch.randn(3, 4, generator=generator),
        "b": torch.tensor(step),
        "c": torch.randn(2, dtype=torch.float64, generator=generator),
        "flag": torch.tensor([True, False]),
        "turned": torch.randn(3, 4, generator=generator).T,
        "nothing": torch.zeros(0, 4),
        "half": torch.randn(4, generator=generator).bfloat16(),
    }


def assert_intact(run: Path, step: int) -> None:
    newest = checkpoint.latest(run)
    assert newest is not None and newest.name == f"step-{step:09d}"
    state, facts = checkpoint.load(newest)
    assert facts["step"] == step
    assert state.keys() == tensors(step).keys()
    for name, value in tensors(step).items():
        assert state[name].dtype == value.dtype and torch.equal(state[name], value)


def test_what_was_saved_comes_back_bit_by_bit(tmp_path: Path):
    assert checkpoint.latest(tmp_path) is None
    checkpoint.save(tmp_path, 7, tensors(7), {"seed": 3, "rate": 0.1, "names": ["a", "ü"]})
    assert_intact(tmp_path, 7)
    facts = checkpoint.load(tmp_path / "checkpoint" / "step-000000007")[1]
    assert (facts["seed"], facts["rate"], facts["names"]) == (3, 0.1, ["a", "ü"])


def test_the_last_two_are_kept_and_a_step_may_be_saved_again(tmp_path: Path):
    for step in (1, 9, 10, 100, 100):
        checkpoint.save(tmp_path, step, tensors(step), {})
        assert_intact(tmp_path, step)
    assert sorted(os.listdir(tmp_path / "checkpoint")) == ["step-000000010", "step-000000100"]


@pytest.mark.parametrize("umask", [0o022, 0o007])
def test_whoever_may_read_a_run_may_read_its_tensors(umask: int, tmp_path: Path):
    """A colleague evaluates a run that lies in a shared folder; safetensors 0.8 hides its files from other users."""
    before = os.umask(umask)
    try:
        folder = checkpoint.save(tmp_path, 1, tensors(1), {})
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"tensors.safetensors": 0o666 & ~umask, "facts.json": 0o666 & ~umask}


STAGES = ("mkdir", "save_file", "write_text", "flush", "rename")


def break_at(patch: pytest.MonkeyPatch, stage: str, problem: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    patch.setattr(Path if stage in ("mkdir", "write_text", "rename") else checkpoint, stage, fail)


@pytest.mark.parametrize("stage", STAGES)
def test_a_full_disk_leaves_the_older_one_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str):
    checkpoint.save(tmp_path, 1, tensors(1), {})
    with monkeypatch.context() as patch, pytest.raises(UserError, match=r"step-000000001 is intact; free some space"):
        break_at(patch, stage, OSError(errno.ENOSPC, "No space left on device"))
        checkpoint.save(tmp_path, 2, tensors(2), {})
    assert_intact(tmp_path, 1)
    assert os.listdir(tmp_path / "checkpoint") == ["step-000000001"], "no draft is left to fill the disk further"
    checkpoint.save(tmp_path, 2, tensors(2), {})
    assert_intact(tmp_path, 2)


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("again", [False, True])
def test_a_kill_at_any_stage_leaves_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, again: bool
):
    """Killed: no handler runs. What it left is cleaned away by the next save."""
    checkpoint.save(tmp_path, 1, tensors(1), {})
    checkpoint.save(tmp_path, 2, tensors(2), {})
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        break_at(patch, stage, KeyboardInterrupt())
        checkpoint.save(tmp_path, 2 if again else 3, tensors(2 if again else 3), {})
    assert_intact(tmp_path, 2)
    checkpoint.save(tmp_path, 4, tensors(4), {})
    assert sorted(os.listdir(tmp_path / "checkpoint")) == ["step-000000002", "step-000000004"]


@pytest.mark.parametrize(
    "damage", ["truncated", "altered", "empty", "gone", "facts cut", "facts empty", "no digest", "list"]
)
def test_damage_is_refused_by_name(tmp_path: Path, damage: str):
    folder = checkpoint.save(tmp_path, 1, tensors(1), {})
    data, facts = folder / "tensors.safetensors", folder / "facts.json"
    whole = data.read_bytes()
    match damage:
        case "truncated":
            data.write_bytes(whole[:-1])
        case "altered":
            data.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        case "empty":
            data.write_bytes(b"")
        case "gone":
            data.unlink()
        case "facts cut":
            facts.write_text(facts.read_text()[:-5])
        case "facts empty":
            facts.write_text("")
        case "no digest":
            facts.write_text(json.dumps({"step": 1}))
        case "list":
            facts.write_text("[]")
    for use in (checkpoint.load, lambda path: checkpoint.load_network(path, nn.Linear(4, 3), "a.")):
        with pytest.raises(UserError, match="damaged"):
            use(folder)


def test_no_file_of_a_checkpoint_is_a_pickle(tmp_path: Path):
    folder = checkpoint.save(tmp_path, 1, tensors(1), {})
    assert sorted(path.name for path in folder.iterdir()) == ["facts.json", "tensors.safetensors"]
    assert "pickle" not in vars(checkpoint) and "torch.load" not in Path(checkpoint.__file__).read_text()


def test_what_does_not_fit_is_named_by_kind_and_example(tmp_path: Path):
    small, other = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 2)), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    with pytest.raises(UserError, match="does not fit the settings of its run") as problem:
        checkpoint.fill(other, small.state_dict(), tmp_path)
    message = str(problem.value)
    assert "3 tensors are missing from it, such as 1.running_mean; 4 are of another shape, such as 0.weight" in message
    assert message.endswith("0.weight: (2, 3) and not (4, 3)")
    with pytest.raises(UserError, match="2 tensors in it are not needed, such as 1.weight$"):
        checkpoint.fill(nn.Sequential(nn.Linear(3, 2)), small.state_dict(), tmp_path)


def test_a_network_is_loaded_strictly(tmp_path: Path):
    network, other = nn.Linear(4, 3), nn.Linear(4, 3)
    state = {f"networks.{name}": value for name, value in network.state_dict().items()}
    folder = checkpoint.save(tmp_path, 1, state, {})
    checkpoint.load_network(folder, other, "networks.")
    assert torch.equal(other.weight, network.weight)
    for wrong in (nn.Linear(4, 2), nn.Linear(4, 3, bias=False)):
        with pytest.raises(UserError, match="does not fit"):
            checkpoint.load_network(folder, wrong, "networks.")


@pytest.mark.parametrize(
    "choice",
    [
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.AdamW(p, lr=0.1),
        lambda p: torch.optim.Adafactor(p, lr=0.1),  # a user's choice may build it: no slot has its parameter's shape
    ],
)
def test_an_optimizer_goes_on_bit_by_bit(tmp_path: Path, choice):
    def walk(network: nn.Linear, optimizer: torch.optim.Optimizer, steps: int) -> None:
        for _ in range(steps):
            optimizer.zero_grad()
            network(torch.ones(2, 4)).square().sum().backward()
            optimizer.step()

    one, two = nn.Linear(4, 3), nn.Linear(4, 3)
    first, second = (choice([{"params": [n.weight]}, {"params": [n.bias], "weight_decay": 0.0}]) for n in (one, two))
    walk(one, first, 3)
    moments, facts = optimizer_state(first)
    folder = checkpoint.save(
        tmp_path, 3, moments | {f"n.{k}": v for k, v in one.state_dict().items()}, {"optimizer": facts}
    )
    state, facts = checkpoint.load(folder)
    checkpoint.load_network(folder, two, "n.")
    for name, value in (("lr", True), ("lr", 10**400), ("lr", math.nan), ("maximize", None), ("maximize", True)):
        groups = [{**group, name: value} for group in facts["optimizer"]["groups"]]
        with pytest.raises(ValueError, match="a setting of the optimizer has another type"):
            restore_optimizer(second, state, {**facts["optimizer"], "groups": groups})
    restore_optimizer(second, state, facts["optimizer"])
    walk(one, first, 3)
    walk(two, second, 3)
    assert torch.equal(one.weight, two.weight) and torch.equal(one.bias, two.bias)


class PreciseMomentum(torch.optim.Optimizer):
    """A user's own optimizer, with slots of other types than their parameter."""

    def step(self) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Move the parameters."""
        for parameter in self.param_groups[0]["params"]:
            slots = self.state[parameter]
            slots.setdefault("velocity", torch.zeros_like(parameter, dtype=torch.float64)).mul_(0.9)
            slots.setdefault("seen", torch.zeros((), dtype=torch.int64)).add_(1)
            slots["velocity"] += parameter.grad
            with torch.no_grad():
                parameter -= 1e-3 * slots["velocity"] / slots["seen"]


def test_slots_of_an_own_optimizer_keep_their_types():
    """torch would give them that of their parameter, and a resumed run would compute with rounded numbers."""
    network = nn.Linear(4, 3)
    first, second = (PreciseMomentum(network.parameters(), {"lr": 0.1}) for _ in range(2))
    for _ in range(3):
        network(torch.rand(2, 4)).square().sum().backward()
        first.step()
    restore_optimizer(second, *optimizer_state(first))
    for parameter in network.parameters():
        slots, others = first.state[parameter], second.state[parameter]
        assert {name: value.dtype for name, value in others.items()} == {"velocity": torch.float64, "seen": torch.int64}
        assert all(torch.equal(slots[name], others[name]) for name in slots)
