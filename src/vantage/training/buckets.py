"""How gradients are laid out while processes add them up."""

from torch import Tensor
from torch.nn import Module
from torch.nn.parallel import DistributedDataParallel

__all__ = ["lay_out"]


def lay_out(model: Module) -> None:
    """Have torch lay out the gradients of a `DistributedDataParallel` for good; does nothing for other modules.

    After the first backward pass, torch lays them out anew, in the order in which they arrived. The order in which more
    than two processes add up a gradient depends on where it lies, so a resumed run would round differently in its first
    step. Here the first pass, at the start and on resuming alike, is one in which every gradient is 0. It leaves these
    zeros as the parameters' gradients.
    """
    if not isinstance(model, DistributedDataParallel):
        return
    module = model.module

    def nothing() -> Tensor:
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        return sum((0 * weight).sum() for weight in weights)  # pyright: ignore[reportReturnType]

    module.forward = nothing
    try:
        model().backward()
    finally:
        del module.forward
