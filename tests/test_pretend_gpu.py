"""The pretended device notices what a real one would wait for, and what it would refuse."""

import copy
from collections.abc import Callable

import pytest
import torch
from pretend_gpu import DEVICE, Pretend, Pretended, pretended, values
from torch import Tensor, nn

WAITS: dict[str, Callable[[Tensor], object]] = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool((x > 0).any()),
    "int": lambda x: int(x.sum()),
    "equal": lambda x: torch.equal(x, x),
    "tolist": lambda x: x.tolist(),
    "cpu": lambda x: x.cpu(),
    "to": lambda x: x.to("cpu", non_blocking=True),
    "nonzero": lambda x: x.nonzero(),
    "where": lambda x: torch.where(x > 0),
    "unique": lambda x: x.unique(),
    "unique_consecutive": lambda x: x.unique_consecutive(),
    "mask": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "write through a mask": lambda x: x.clone().__setitem__(x > 0, x[0]),
    "repeat_interleave": lambda x: x.repeat_interleave(torch.ones_like(x, dtype=torch.int64)),
    "bincount": lambda x: torch.zeros_like(x, dtype=torch.int64).bincount(),
    "segment_reduce": lambda x: torch.segment_reduce(x, "sum", lengths=torch.full((1,), 4, device=x.device)),
    "numbers from Python": lambda x: torch.tensor([1.0], device=x.device),
    "new_tensor": lambda x: x.new_tensor([1.0]),
    "a list as index": lambda x: x[[0, 2]],
    "an index on the CPU": lambda x: x[torch.arange(2)],
    "a blocking copy": lambda x: torch.ones(2).to(x),
    "as another tensor": lambda x: torch.ones(2).to(x.device),
    "written from the CPU": lambda x: x.clone().copy_(torch.ones(4)),
}
FREE: dict[str, Callable[[Tensor], object]] = {
    "arithmetic": lambda x: (x * 2 + torch.tensor(1.0)).exp().sum(),
    "a constant": lambda x: torch.full((3,), 5.0, device=x.device) + x.new_zeros(3),
    "an index on the device": lambda x: x[torch.arange(2, device=x.device)],
    "a copy that does not block": lambda x: torch.ones(4).to(x, non_blocking=True) + x,
    "where with three": lambda x: torch.where(x > 0, x, 0.0),
    "a number through a mask": lambda x: x.clone().__setitem__(x > 0, 0.0),
    "a known number of repeats": lambda x: x.repeat_interleave(torch.full_like(x, 2, dtype=torch.int64), output_size=8),
    "what is computed on the CPU": lambda x: (torch.arange(5) > 2).nonzero(),
}


@pytest.mark.parametrize("name", [*WAITS, *FREE])
def test_what_a_device_is_waited_for(name: str):
    with Pretend() as mode:
        (WAITS | FREE)[name](Pretended(torch.tensor([-1.0, 2.0, 3.0, -4.0])))
    assert bool(mode.waits) == (name in WAITS), mode.waits


@pytest.mark.parametrize(
    "mix", [torch.add, torch.matmul, lambda x, y: torch.cat([x, y]), lambda x, y: x.index_add_(0, y.long(), x)]
)
def test_a_mix_of_devices_is_refused(mix: Callable[[Tensor, Tensor], Tensor]):
    with Pretend(), pytest.raises(RuntimeError, match="on the CPU"):
        mix(Pretended(torch.ones(3)), torch.ones(3))


def test_its_memory_is_not_the_hosts():
    with Pretend(), pytest.raises(TypeError, match="not the host's"):
        Pretended(torch.ones(3)).numpy()


def test_gradients_and_buffers_are_those_of_the_cpu():
    torch.manual_seed(0)
    images = torch.randn(4, 3, 5, 5)
    networks = [nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(18, 2)) for _ in range(2)]
    networks[1].load_state_dict(networks[0].state_dict())
    networks[0](images).square().sum().backward()
    with Pretend() as mode:
        pretended(networks[1])(Pretended(images)).square().sum().backward()
    assert mode.waits == [] and all(parameter.device == DEVICE for parameter in networks[1].parameters())
    for one, other in zip(networks[0].parameters(), networks[1].parameters(), strict=True):
        assert torch.equal(one.grad, values(other.grad))  # pyright: ignore
    assert torch.equal(networks[0][1].running_mean, values(networks[1][1].running_mean))


def test_modules_are_copied_and_moved():
    """A copy stays on the device and has parameters; `Module.to` and `Module.cpu` move every parameter and buffer."""
    with Pretend():
        layer = nn.BatchNorm1d(3).to(DEVICE)
        twin = copy.deepcopy(layer)
        on_device = [*twin.state_dict().values()]
        assert all(value.device == DEVICE for value in on_device) and len(list(twin.parameters())) == 2
        assert all(value.device == torch.device("cpu") for value in layer.cpu().state_dict().values())
    assert torch.equal(values(twin.weight), torch.ones(3)) and twin.weight.requires_grad
