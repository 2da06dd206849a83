"""BatchNorm of groups in one call: the groups of a batch are folded into channels, normalized there, and unfolded.

g: groups   n: images of a group   c: channels   ...: height and width, or a length, or nothing
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["FoldedBatchNorm"]


class FoldedBatchNorm(torch.autograd.Function):
    """BatchNorm of groups. It is an autograd function so that its result is not a view, which an in-place activation
    would have to copy."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any) -> Tensor:
        """Normalize. `rest` holds running mean and variance of g · c channels, groups, weight of a new batch, eps."""
        mean, variance, ctx.groups, weight_on_new, ctx.eps = rest
        flat = _fold(images, ctx.groups)
        scale, shift = (None if values is None else values.repeat(ctx.groups) for values in (weight, bias))
        result, *own = torch.native_batch_norm(flat, scale, shift, mean, variance, True, weight_on_new, ctx.eps)
        ctx.save_for_backward(flat, scale, *own)
        return _unfold(result, images, ctx.groups)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The gradients of images, weight and bias."""
        flat, scale, *own = ctx.saved_tensors
        needs = list(ctx.needs_input_grad[:3])
        images, *affine = torch.ops.aten.native_batch_norm_backward(
            _fold(gradients[0], ctx.groups), flat, scale, None, None, *own, True, ctx.eps, needs
        )
        pairs = zip(affine, needs[1:], strict=True)
        sums = (values.view(ctx.groups, -1).sum(0) if need else None for values, need in pairs)
        return (_unfold(images, gradients[0], ctx.groups) if needs[0] else None, *sums, *[None] * 5)


def _fold(images: Float[Tensor, "g_n c *s"], groups: int) -> Float[Tensor, "n g_c *s"]:
    """Images of g groups as images with g times as many channels, contiguous in memory."""
    by_group = _by_group(images, groups)
    flat = torch.empty(by_group.shape, dtype=images.dtype, device=images.device)
    _copy(flat, by_group)
    return flat.flatten(-2).movedim(-1, 1)


def _unfold(flat: Float[Tensor, "n g_c *s"], like: Float[Tensor, "g_n c *s"], groups: int) -> Float[Tensor, "g_n c *s"]:
    """The inverse of `_fold`, in the layout of `like`."""
    images = torch.empty_like(like)
    _copy(_by_group(images, groups), flat.movedim(1, -1).unflatten(-1, (groups, -1)))
    return images


def _by_group(images: Float[Tensor, "g_n c *s"], groups: int) -> Float[Tensor, "n *s g c"]:
    return images.movedim(1, -1).unflatten(0, (groups, -1)).movedim(0, -2)


def _copy(target: Tensor, origin: Tensor) -> None:
    """Copy 16 bytes at a time if the channels allow it; on a GPU this is several times as fast as value by value."""
    step = 16 // origin.element_size()
    if target.shape[-1] % step == 0 and all(part.stride(-1) == 1 for part in (target, origin)):
        target, origin = target.view(torch.complex128), origin.view(torch.complex128)
    target.copy_(origin)
