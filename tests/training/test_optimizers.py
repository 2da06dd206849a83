"""Optimizers against slow loops in float64, and which parameters they spare."""

import copy
from collections.abc import Callable

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from vantage.errors import UserError
from vantage.training.optimizers import LARS, SGD, AdamW, BiasAndNorm, Exclusion, Named, NoParameters, Optimizer


def small_network() -> nn.Module:
    network = nn.Sequential(nn.Linear(5, 7), nn.BatchNorm1d(7), nn.ReLU(), nn.Linear(7, 3)).double()
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return network


def descend(network: nn.Module, optimizer: torch.optim.Optimizer, rates: list[float]) -> list[dict[str, Tensor]]:
    """Train on fixed random batches and return the gradients each step used."""
    source = torch.Generator().manual_seed(3)
    gradients = []
    for rate in rates:
        for group in optimizer.param_groups:
            group["lr"] = rate
        optimizer.zero_grad()
        network(torch.randn(11, 5, generator=source, dtype=torch.float64)).square().sum().backward()
        gradients.append({name: p.grad.clone() for name, p in network.named_parameters() if p.grad is not None})
        optimizer.step()
    return gradients


def lars_by_hand(
    start: dict[str, Tensor], gradients: list[dict[str, Tensor]], rates: list[float], choice: LARS
) -> dict[str, list[float]]:
    """Algorithm 1 of arXiv 1708.03888, one number at a time."""
    weight = {name: value.flatten().tolist() for name, value in start.items()}
    velocity = {name: [0.0] * len(values) for name, values in weight.items()}
    for step, rate in enumerate(rates):
        for name, values in weight.items():
            gradient = gradients[step][name].flatten().tolist()
            local, decay = 1.0, 0.0
            if start[name].ndim > 1:
                decay = choice.weight_decay
                size = sum(value * value for value in values) ** 0.5
                slope = sum(value * value for value in gradient) ** 0.5
                if size > 0 and slope > 0:
                    local = choice.trust_coefficient * size / (slope + decay * size)
            for i in range(len(values)):
                full = gradient[i] + decay * values[i]
                velocity[name][i] = choice.momentum * velocity[name][i] + rate * local * full
                values[i] -= velocity[name][i]
    return weight


def test_lars_is_the_slow_loop() -> None:
    network = small_network()
    start = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    choice, rates = LARS(trust_coefficient=0.01, weight_decay=0.1), [0.5, 1.0, 0.7, 0.2]
    gradients = descend(network, choice.build(network), rates)
    expected = lars_by_hand(start, gradients, rates, choice)
    for name, parameter in network.named_parameters():
        assert parameter.flatten().tolist() == pytest.approx(expected[name], rel=1e-12, abs=1e-12)
        assert not torch.equal(parameter, start[name])


def test_lars_moves_a_weight_that_is_still_zero_and_leaves_one_without_gradient() -> None:
    network = nn.Linear(2, 2).double()
    nn.init.zeros_(network.weight)
    optimizer = LARS().build(network, lr=0.1)
    network.weight.grad = torch.ones(2, 2, dtype=torch.float64)
    before = network.bias.detach().clone()
    optimizer.step()
    torch.testing.assert_close(network.weight.detach(), torch.full((2, 2), -0.1, dtype=torch.float64))
    assert torch.equal(network.bias.detach(), before)


def test_lars_does_not_care_for_the_scale_of_the_gradient() -> None:
    weights = []
    for scale in (0.1, 1.0, 100.0):
        weight = nn.Linear(3, 4, bias=False).double()
        nn.init.ones_(weight.weight)
        optimizer = LARS(weight_decay=0.0).build(weight, lr=1.0)
        weight.weight.grad = scale * torch.arange(12, dtype=torch.float64).view(4, 3)
        optimizer.step()
        weights.append(weight.weight.detach())
    torch.testing.assert_close(weights[0], weights[1])
    torch.testing.assert_close(weights[2], weights[1])
    assert (weights[1] - 1).norm() / 12**0.5 == pytest.approx(0.001)


def test_lars_agrees_with_timm_while_the_rate_is_constant() -> None:
    lars = pytest.importorskip("timm.optim").Lars
    ours = small_network()
    theirs = copy.deepcopy(ours)
    matrices = [p for p in theirs.parameters() if p.ndim > 1]
    vectors = [p for p in theirs.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    rates = [0.3] * 4
    descend(ours, LARS(weight_decay=0.01).build(ours), rates)
    descend(theirs, lars(groups, lr=0.3, momentum=0.9, trust_coeff=0.001, eps=0.0), rates)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-12)


def test_sgd_is_the_slow_loop_and_decays_everything() -> None:
    network = small_network()
    weight = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    velocity = {name: torch.zeros_like(value) for name, value in weight.items()}
    rates = [0.01, 0.02, 0.005]
    gradients = descend(network, SGD(weight_decay=0.3).build(network), rates)
    for rate, gradient in zip(rates, gradients, strict=True):
        for name in weight:
            velocity[name] = 0.9 * velocity[name] + gradient[name] + 0.3 * weight[name]
            weight[name] = weight[name] - rate * velocity[name]
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter.detach(), weight[name], rtol=1e-12, atol=1e-12)


def test_adamw_decays_only_the_matrices() -> None:
    network = small_network()
    optimizer = AdamW(weight_decay=0.5).build(network, lr=0.1)
    start = {name: parameter.detach().clone() for name, parameter in network.named_parameters()}
    for parameter in network.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in network.named_parameters():
        expected = start[name] * (0.95 if parameter.ndim > 1 else 1.0)
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-12, atol=0)


def decays(network: nn.Module, choice: Optimizer) -> dict[str, float]:
    groups = choice.build(network).param_groups
    decay = {id(parameter): group["weight_decay"] for group in groups for parameter in group["params"]}
    return {name: decay[id(parameter)] for name, parameter in network.named_parameters()}


@pytest.mark.parametrize("choice", [LARS(), AdamW(), SGD(exclude=BiasAndNorm())])
def test_biases_and_norms_of_a_resnet_are_spared_by_name(choice: Optimizer) -> None:
    with torch.device("meta"):
        network = torchvision.models.resnet18()
    decay_of = decays(network, choice)
    norms = {name for name, module in network.named_modules() if isinstance(module, nn.BatchNorm2d)}
    expected = {f"{name}.{field}" for name in norms for field in ("weight", "bias")} | {"fc.bias"}
    assert {name for name, decay in decay_of.items() if decay == 0} == expected
    assert "layer2.0.downsample.1.weight" in expected and decay_of["layer2.0.downsample.0.weight"] > 0
    assert len(expected) == 41 and len(decay_of) == 62


def test_moco_decays_every_parameter() -> None:
    with torch.device("meta"):
        network = torchvision.models.resnet18()
    assert set(decays(network, SGD()).values()) == {1e-4}
    assert set(decays(network, LARS(exclude=NoParameters())).values()) == {1e-6}


def test_local_aggregation_spares_what_is_named_bn() -> None:
    """Its release looks for "bn" in the name, which shortcuts' BatchNorm lacks."""
    with torch.device("meta"):
        network = torchvision.models.resnet18()
    decay_of = decays(network, SGD(exclude=Named("bn")))
    spared = [name for name, decay in decay_of.items() if decay == 0]
    assert len(spared) == 34 and {name.split(".")[-2] for name in spared} == {"bn1", "bn2"}
    assert decay_of["layer2.0.downsample.1.weight"] == decay_of["fc.bias"] == 1e-4


@pytest.mark.parametrize("spare", [NoParameters(), BiasAndNorm(), Named("bn")])
def test_exclusions_are_values(spare: Exclusion) -> None:
    assert isinstance(spare, Exclusion)
    assert eval(repr(spare)) == spare


CHOICES = [SGD(), LARS(weight_decay=0.01), AdamW()]
names = pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: type(choice).__name__)


@names
def test_a_slow_copy_is_left_alone(choice: Optimizer) -> None:
    network = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3).requires_grad_(False)])
    parameters = {id(p) for group in choice.build(network).param_groups for p in group["params"]}
    assert parameters == {id(p) for p in network[0].parameters()}


@names
def test_state_survives_a_round_trip(choice: Optimizer) -> None:
    through = small_network()
    optimizer = choice.build(through)
    descend(through, optimizer, [0.1, 0.2])
    again = copy.deepcopy(through)
    restored = choice.build(again)
    restored.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    descend(through, optimizer, [0.05, 0.1])
    descend(again, restored, [0.05, 0.1])
    for one, other in zip(through.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)


@names
def test_a_closure_is_called_with_gradients_on_and_its_value_returned(choice: Optimizer) -> None:
    network = small_network()
    optimizer = choice.build(network, lr=0.1)

    def closure() -> float:
        loss = network(torch.ones(4, 5, dtype=torch.float64)).square().sum()
        loss.backward()
        return loss.item()

    assert optimizer.step(closure) > 0


class Count(TorchDispatchMode):
    """Counts the calls that reach torch's dispatcher."""

    calls = 0

    def __torch_dispatch__(self, func: Callable[..., object], types, args=(), kwargs=None) -> object:
        self.calls += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("choice", [LARS(), LARS(exclude=NoParameters())])
def test_a_step_of_lars_takes_as_many_calls_for_a_hundred_tensors_as_for_two(choice: Optimizer) -> None:
    counts = []
    for layers in (1, 50):
        network = nn.ModuleList([nn.Linear(3, 3) for _ in range(layers)])
        optimizer = choice.build(network, lr=0.1)
        for _ in range(2):
            for parameter in network.parameters():
                parameter.grad = torch.ones_like(parameter)
            counter = Count()
            with counter:
                optimizer.step()
        counts.append(counter.calls)
    assert counts[0] == counts[1] > 0


def test_nothing_to_train_is_refused() -> None:
    with pytest.raises(UserError, match="ReLU.*no parameter"):
        SGD().build(nn.ReLU())


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda: SGD(momentum=1.0), "momentum"),
        (lambda: SGD(weight_decay=-1e-4), "weight_decay"),
        (lambda: LARS(trust_coefficient=float("nan")), "trust_coefficient"),
        (lambda: AdamW(beta1=-0.1), "beta1"),
        (lambda: AdamW(beta2=1.5), "beta2"),
    ],
)
def test_settings_that_make_no_sense_are_refused_by_name(make: Callable[[], Optimizer], name: str) -> None:
    with pytest.raises(UserError, match=f"{name} is .*must"):
        make()
