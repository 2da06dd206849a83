"""BatchNorm in groups on a GPU, for all groups at once: two passes over the images forwards, two backwards.

g: groups   c: channels   ...: height and width, or a length, or nothing

Torch's BatchNorm would have to be started for each group, or the groups copied into channels, which reads and writes
the images twice as often. On a CPU the same operations are computed by formula, as a reference for the kernels.
"""

import os
import shlex
import shutil
import sysconfig
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable

__all__ = ["FusedBatchNorm", "can_fuse"]


@cache
def can_fuse() -> bool:
    """Whether kernels can be made here: Triton comes with torch for Linux, and needs a C compiler (`CC`, or the usual
    ones) and Python's headers."""
    compilers = [shlex.split(os.environ["CC"])[0]] if os.environ.get("CC") else ["gcc", "clang"]
    headers = Path(sysconfig.get_path("include", "posix_prefix"), "Python.h")
    return find_spec("triton") is not None and any(map(shutil.which, compilers)) and headers.is_file()


class FusedBatchNorm(torch.autograd.Function):
    """BatchNorm of groups. It is an autograd function so that its result is not a view, which an in-place activation
    would have to copy."""

    @staticmethod
    def forward(ctx: Any, images: Tensor, weight: Tensor | None, bias: Tensor | None, *rest: Any) -> Tensor:
        """Normalize. `rest` holds running mean and variance (c, or both `None`), which are updated, the number of
        groups, the weight of a new batch in them, and ε."""
        images = images.movedim(1, -1).contiguous().movedim(-1, 1)
        result, mean, scale = normalize(images, weight, bias, *rest)
        ctx.save_for_backward(images, weight, mean, scale)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The gradients of images, weight and bias."""
        slopes = gradients[0].movedim(1, -1).contiguous().movedim(-1, 1)
        found = slope(slopes, *ctx.saved_tensors)
        needed = (each if need else None for each, need in zip(found, ctx.needs_input_grad, strict=False))
        return (*needed, *[None] * 5)


def _rows(images: Float[Tensor, "b c *s"]) -> Float[Tensor, "b_s c"]:
    return images.movedim(1, -1).view(-1, images.shape[1])


@torch.library.custom_op("vantage::normalize_groups", mutates_args=("running_mean", "running_var"), device_types="cuda")
def normalize(
    images: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    groups: int,
    weight_on_new: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Images (b c ...) in channels_last, normalized, and the mean and 1 / √(variance + ε) of each group (g c)."""
    from vantage.encoders.normalization import kernels

    rows, result = _rows(images), torch.empty_like(images)
    running = None if running_mean is None or running_var is None else (running_mean, running_var)
    statistics = kernels.finish(rows, kernels.sums(rows, None, None, groups), running, weight_on_new, eps)
    kernels.write(_rows(result), rows, statistics, (weight, bias))
    return result, *statistics


@torch.library.custom_op("vantage::slope_of_groups", mutates_args=(), device_types="cuda")
def slope(
    slopes: Tensor, images: Tensor, weight: Tensor | None, mean: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of images, weight and bias, from those of the result."""
    from vantage.encoders.normalization import kernels

    rows, result = _rows(images), torch.empty_like(images)
    total = kernels.sums(rows, _rows(slopes), mean, len(mean)).sum(0)
    kernels.write(_rows(result), rows, (mean, scale), (weight, None), _rows(slopes), total)
    return result, *_affine(total, scale, weight)


def _affine(total: Float[Tensor, "2 g c"], scale: Float[Tensor, "g c"], weight: Tensor | None) -> tuple[Tensor, Tensor]:
    kind = scale.dtype if weight is None else weight.dtype
    return (total[1] * scale).sum(0).to(kind), total[0].sum(0).to(kind)


@normalize.register_kernel("cpu")
def _(
    images: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    groups: int,
    weight_on_new: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    rows = _rows(images).unflatten(0, (groups, -1)).to(torch.promote_types(images.dtype, torch.float32))
    variance, mean = torch.var_mean(rows, 1, correction=0)
    scale = torch.rsqrt(variance + eps)
    if running_mean is not None and running_var is not None:
        unbiased = variance * (rows.shape[1] / (rows.shape[1] - 1))
        running_mean.lerp_(mean.mean(0).to(running_mean.dtype), weight_on_new)
        running_var.lerp_(unbiased.mean(0).to(running_var.dtype), weight_on_new)
    factor = scale if weight is None else scale * weight
    values = (rows - mean[:, None]) * factor[:, None]
    result = torch.empty_like(images)
    _rows(result).copy_((values if bias is None else values + bias).flatten(0, 1))
    return result, mean, scale


@slope.register_kernel("cpu")
def _(
    slopes: Tensor, images: Tensor, weight: Tensor | None, mean: Tensor, scale: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    given, rows = (_rows(each).unflatten(0, (len(mean), -1)).to(mean.dtype) for each in (slopes, images))
    away = (rows - mean[:, None]) * scale[:, None]
    total = torch.stack([given.sum(1), (given * away).sum(1)])
    even, tilt = (total / rows.shape[1])[:, :, None]
    factor = scale if weight is None else scale * weight
    result = torch.empty_like(images)
    _rows(result).copy_(((given - even - away * tilt) * factor[:, None]).flatten(0, 1))
    return result, *_affine(total, torch.ones_like(scale), weight)


@normalize.register_fake
def _(images: Tensor, weight: Any, bias: Any, running_mean: Any, running_var: Any, groups: int, *rest: Any) -> Any:
    kind, shape = torch.promote_types(images.dtype, torch.float32), (groups, images.shape[1])
    return torch.empty_like(images), images.new_empty(shape, dtype=kind), images.new_empty(shape, dtype=kind)


@slope.register_fake
def _(slopes: Tensor, images: Tensor, weight: Tensor | None, mean: Tensor, scale: Tensor) -> Any:
    like = scale[0] if weight is None else weight
    return torch.empty_like(images), torch.empty_like(like), torch.empty_like(like)
