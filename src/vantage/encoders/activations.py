"""Memory that a network needs in addition to its weights, measured in one pass over few images before many are used."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

__all__ = ["bytes_for_backward", "largest_output"]


def bytes_for_backward(network: nn.Module, forward: Callable[[], object]) -> int:
    """Bytes that autograd keeps for the backward pass of `forward`, excluding the weights of `network`. A tensor that
    several operations keep is counted once."""
    weights = {parameter.untyped_storage().data_ptr() for parameter in network.parameters()}
    bytes_by_storage: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            bytes_by_storage[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = forward()
        total = sum(bytes_by_storage.values())
    del result  # until here the graph kept every tensor alive, so no address was reused
    return total


@torch.no_grad()
def largest_output(network: nn.Module, forward: Callable[[], object]) -> int:
    """Bytes of the largest output of any layer of `network` in `forward`."""
    sizes = [0]

    def look(module: nn.Module, inputs: object, output: object) -> None:
        if isinstance(output, Tensor):
            sizes.append(output.numel() * output.element_size())

    handles = [layer.register_forward_hook(look) for layer in network.modules()]
    try:
        forward()
    finally:
        for handle in handles:
            handle.remove()
    return max(sizes)
