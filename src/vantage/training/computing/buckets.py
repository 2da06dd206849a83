"""How gradients are laid out in memory while processes add them up."""

from torch import Tensor, zeros_like
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel

__all__ = ["lay_out"]


def lay_out(model: Module) -> None:
    """Give the gradients of a `DistributedDataParallel` their final layout; does nothing for other modules.

    After the first backward pass, torch rearranges its buckets in the order in which gradients arrived. The order in
    which more than two processes add up a gradient depends on its position, so a resumed run would round differently in
    its first step. Here the first pass, both at the start and on resuming, is an extra one in which every gradient is
    0. It leaves these zeros as the parameters' gradients.
    """
    if not isinstance(model, DistributedDataParallel):
        return
    module = model.module

    def nothing() -> Tensor:
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        # zeros in the order of the weight, which its gradient takes over: torch warns of any other
        return sum((zeros_like(weight) * weight).sum() for weight in weights)  # pyright: ignore[reportReturnType]

    module.forward = nothing
    try:
        model().backward()
    finally:
        del module.forward
