"""Optimizers: SGD, LARS and AdamW, and which parameters are excluded from weight decay.

Each choice is a frozen value with `build(module, lr)`. Only parameters that require a gradient are given to the
optimizer, so a momentum encoder inside the module is left alone. The training loop writes the learning rate of each
step into every parameter group (`group["lr"]`). On a GPU all three work on lists of tensors, which takes a few kernel
launches instead of several for each parameter; on a CPU torch's SGD and AdamW update tensor by tensor, which is faster
there.
"""
# torch documents its operations on lists of tensors, but does not export them to type checkers.
# pyright: reportPrivateImportUsage=false

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from vantage.errors import UserError

__all__ = ["LARS", "SGD", "AdamW", "BiasAndNorm", "Exclusion", "Named", "NoParameters", "Optimizer"]


@runtime_checkable
class Exclusion(Protocol):
    """Which parameters are excluded from weight decay (and, under LARS, from the adapted learning rate)."""

    def __call__(self, name: str, parameter: nn.Parameter) -> bool:
        """Whether this parameter is excluded; `name` is its dotted name in `named_parameters`."""
        ...


@dataclass(frozen=True)
class NoParameters:
    """Exclude none: every parameter decays, as in the releases of MoCo and of instance discrimination."""

    def __call__(self, name: str, parameter: nn.Parameter) -> bool:
        """False for every parameter."""
        return False


@dataclass(frozen=True)
class BiasAndNorm:
    """Exclude biases and the scales and shifts of normalization layers, as SimCLR and PIRL do.

    These are the parameters with at most one axis, whatever the type of the layer, so a learned scale per channel, as
    in some transformers, is excluded too.
    """

    def __call__(self, name: str, parameter: nn.Parameter) -> bool:
        """True for parameters with at most one axis."""
        return parameter.ndim <= 1


@dataclass(frozen=True)
class Named:
    """Exclude parameters by a part of their dotted names, as releases do that look for "bn" in the name.

    Names are those of torchvision's networks, so "bn" misses the normalization of shortcuts ("downsample.1").
    """

    text: str = "bn"
    """Text that the names of excluded parameters contain."""

    def __call__(self, name: str, parameter: nn.Parameter) -> bool:
        """True for parameters whose name contains `text`."""
        return self.text in name


@runtime_checkable
class Optimizer(Protocol):
    """A frozen choice of how parameters move."""

    def build(self, module: nn.Module, lr: float = 0.0) -> torch.optim.Optimizer:
        """An optimizer of the parameters of `module` that require a gradient; the loop sets `lr` before each step."""
        ...


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum: v ← momentum · v + g + weight_decay · w, then w ← w − lr · v.

    The defaults are MoCo's (arXiv 1911.05722): all parameters decay.
    """

    momentum: float = 0.9
    """Weight of the past in the velocity, in [0, 1)."""
    weight_decay: float = 1e-4
    """L2 penalty, added to the gradient."""
    exclude: Exclusion = NoParameters()
    """Which parameters do not decay."""

    def __post_init__(self) -> None:
        _in_range(self, "momentum", self.momentum, 1.0)
        _in_range(self, "weight_decay", self.weight_decay)

    def build(self, module: nn.Module, lr: float = 0.0) -> torch.optim.SGD:
        """torch's SGD; raises `UserError` if `module` has nothing to train."""
        with_decay, without_decay = _split(module, self.exclude)
        groups = [{"params": with_decay}, {"params": without_decay, "weight_decay": 0.0}]
        return torch.optim.SGD(_nonempty(groups), lr=lr, momentum=self.momentum, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class AdamW:
    """Adam with weight decay decoupled from the gradient (arXiv 1711.05101), for transformers.

    None of the methods here was published with it; the default decay is our choice.
    """

    beta1: float = 0.9
    """Weight of the past in the mean of the gradient, in [0, 1)."""
    beta2: float = 0.999
    """Weight of the past in the mean of its square, in [0, 1)."""
    weight_decay: float = 0.05
    """Share of each weight removed in a step, times the learning rate."""
    eps: float = 1e-8
    """Added to the root of the second moment, against division by zero."""
    exclude: Exclusion = BiasAndNorm()
    """Which parameters do not decay."""

    def __post_init__(self) -> None:
        _in_range(self, "beta1", self.beta1, 1.0)
        _in_range(self, "beta2", self.beta2, 1.0)
        _in_range(self, "weight_decay", self.weight_decay)
        _in_range(self, "eps", self.eps)

    def build(self, module: nn.Module, lr: float = 0.0) -> torch.optim.AdamW:
        """torch's AdamW; raises `UserError` if `module` has nothing to train."""
        with_decay, without_decay = _split(module, self.exclude)
        groups = [{"params": with_decay}, {"params": without_decay, "weight_decay": 0.0}]
        moments = (self.beta1, self.beta2)
        return torch.optim.AdamW(_nonempty(groups), lr=lr, betas=moments, eps=self.eps, weight_decay=self.weight_decay)


@dataclass(frozen=True)
class LARS:
    """Layer-wise adaptive rate scaling, for large batches (arXiv 1708.03888, algorithm 1), with SimCLR's defaults.

    For each parameter w with gradient g:

        scale ← trust_coefficient · |w| / (|g| + weight_decay · |w|)        (1 if |w| or |g| is 0)
        v ← momentum · v + lr · scale · (g + weight_decay · w)
        w ← w − v

    Excluded parameters have scale 1 and no decay. The learning rate is inside the velocity, as in the paper; torch's
    SGD keeps it outside, which differs only while it changes. SimCLR's `lr` is 0.3 · batch_size / 256.
    """

    trust_coefficient: float = 0.001
    """Size of a step relative to the size of the weights, at `lr` 1."""
    momentum: float = 0.9
    """Weight of the past in the velocity, in [0, 1)."""
    weight_decay: float = 1e-6
    """L2 penalty, added to the gradient."""
    exclude: Exclusion = BiasAndNorm()
    """Which parameters neither decay nor have their learning rate adapted."""

    def __post_init__(self) -> None:
        _in_range(self, "momentum", self.momentum, 1.0)
        _in_range(self, "weight_decay", self.weight_decay)
        _in_range(self, "trust_coefficient", self.trust_coefficient)

    def build(self, module: nn.Module, lr: float = 0.0) -> "LARSOptimizer":
        """The optimizer below; raises `UserError` if `module` has nothing to train."""
        with_decay, without_decay = _split(module, self.exclude)
        groups = [
            {"params": with_decay, "weight_decay": self.weight_decay, "adapt": True},
            {"params": without_decay, "weight_decay": 0.0, "adapt": False},
        ]
        return LARSOptimizer(_nonempty(groups), lr=lr, momentum=self.momentum, trust=self.trust_coefficient)


class LARSOptimizer(torch.optim.Optimizer):
    """The update of `LARS`, over lists of tensors.

    Written here because torch has none. With timm's, SimCLR would require an optional dependency (the tests compare the
    two if timm is installed); other implementations are archived or loop over parameters. The norms stay on the device,
    so no step waits for the GPU.
    """

    def __init__(self, groups: list[dict[str, Any]], lr: float, momentum: float, trust: float) -> None:
        """Each of `groups` holds params, weight_decay and adapt (whether the learning rate follows the norms)."""
        super().__init__(groups, {"lr": lr, "momentum": momentum, "trust": trust, "weight_decay": 0.0, "adapt": True})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Move every parameter that has a gradient; returns the result of `closure`, if there is one."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            if weights:
                self._move(weights, group)
        return loss

    def _move(self, weights: list[Tensor], group: dict[str, Any]) -> None:
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        updates = list(torch._foreach_add(gradients, weights, alpha=group["weight_decay"]))
        if group["adapt"]:
            torch._foreach_mul_(updates, _scales(weights, gradients, group["trust"], group["weight_decay"]))
        velocities = [self._velocity(weight) for weight in weights]
        torch._foreach_mul_(velocities, group["momentum"])
        torch._foreach_add_(velocities, updates, alpha=group["lr"])
        torch._foreach_sub_(weights, velocities)

    def _velocity(self, weight: Tensor) -> Tensor:
        state = self.state[weight]
        if "velocity" not in state:
            state["velocity"] = torch.zeros_like(weight)
        return state["velocity"]


def _scales(weights: list[Tensor], gradients: list[Tensor], trust: float, weight_decay: float) -> list[Tensor]:
    size = torch.stack(torch._foreach_norm(weights))
    slope = torch.stack(torch._foreach_norm(gradients))
    scale = trust * size / (slope + weight_decay * size)
    # Otherwise a parameter that is zero would stay zero.
    return list(torch.where((size > 0) & (slope > 0), scale, 1.0).unbind())


def _split(module: nn.Module, exclude: Exclusion) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    pairs = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    if not pairs:
        raise UserError(
            f"{type(module).__name__} has no parameter that requires a gradient, so there is nothing to optimize:"
            " give the optimizer the network that trains"
        )
    regular = [parameter for name, parameter in pairs if not exclude(name, parameter)]
    return regular, [parameter for name, parameter in pairs if exclude(name, parameter)]


def _nonempty(groups: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [group for group in groups if group["params"]]


def _in_range(choice: object, field: str, value: float, below: float = float("inf")) -> None:
    if not 0 <= value < below:
        raise UserError(f"{type(choice).__name__}: {field} is {value}; it must be 0 or more and below {below}")
