"""The kernels of BatchNorm in groups on a GPU, in Triton.

g: groups   n: rows of a group, which are its images times their places   c: channels   s: stretches of a group's rows

Images are read where they are, as rows of channels. A group is summed up in stretches, which are added in a fixed
order, so results repeat bit by bit. Distances from a group's first row are summed, so nothing cancels where a mean is
far from zero.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from jaxtyping import Float
from torch import Tensor

__all__ = ["finish", "sums", "write"]

_ROWS, _CHANNELS, _TILE = 64, 64, 8192
"""Rows and channels that a program reads at once, and the most partial sums that one adds up."""
_PROGRAMS = 512
"""Enough programs to fill a GPU."""


@triton.jit
def _sum_up(images, slopes, center, step, sums, rows, channels, BACKWARD: tl.constexpr, R: tl.constexpr,
            C: tl.constexpr):  # fmt: skip
    # Of a stretch of a group: the sums of o and of (image − center) · o, as `sums` describes them.
    stretch, stretches = tl.program_id(0), tl.num_programs(0)
    group, groups = tl.program_id(1).to(tl.int64), tl.num_programs(1)
    channel = tl.program_id(2) * C + tl.arange(0, C)
    inside = channel < channels
    middle = tl.load(center + group * step + channel, mask=inside, other=0.0).to(tl.float32)
    first, second = tl.zeros((R, C), tl.float32), tl.zeros((R, C), tl.float32)
    for start in range(stretch * R, rows, stretches * R):
        row = start + tl.arange(0, R)
        mask = (row < rows)[:, None] & inside[None, :]
        at = (group * rows + row)[:, None] * channels + channel[None, :]
        away = tl.load(images + at, mask=mask, other=0.0).to(tl.float32) - middle[None, :]
        if BACKWARD:
            factor = tl.load(slopes + at, mask=mask, other=0.0).to(tl.float32)
        else:
            factor = tl.where(mask, away, 0.0)
        first += factor
        second += away * factor
    at = (stretch * 2 * groups + group) * channels + channel
    tl.store(sums + at, tl.sum(first, 0), mask=inside)
    tl.store(sums + at + groups * channels, tl.sum(second, 0), mask=inside)


@triton.jit
def _finish(images, sums, mean, scale, running_mean, running_variance, rows, channels, groups, stretches, eps,
            weight_on_new, TRACK: tl.constexpr, G: tl.constexpr, S: tl.constexpr, C: tl.constexpr):  # fmt: skip
    # Mean and 1 / √(variance + ε) of all groups, for some channels, from the sums of their stretches.
    channel, group, stretch = tl.program_id(0) * C + tl.arange(0, C), tl.arange(0, G), tl.arange(0, S)
    inside, mask = channel < channels, (group < groups)[:, None] & (channel < channels)[None, :]
    place = group[:, None] * channels + channel[None, :]
    at = place[:, None, :] + stretch[None, :, None] * (2 * groups * channels)
    there = mask[:, None, :] & (stretch < stretches)[None, :, None]
    away = tl.sum(tl.load(sums + at, mask=there, other=0.0), 1) / rows
    square = tl.sum(tl.load(sums + at + groups * channels, mask=there, other=0.0), 1) / rows
    first = group[:, None].to(tl.int64) * rows * channels + channel[None, :]
    middle = tl.load(images + first, mask=mask, other=0.0).to(tl.float32) + away
    variance = tl.maximum(square - away * away, 0.0)
    tl.store(mean + place, middle, mask=mask)
    tl.store(scale + place, 1.0 / tl.sqrt(variance + eps), mask=mask)
    if TRACK:
        old = tl.load(running_mean + channel, mask=inside, other=0.0).to(tl.float32)
        new = tl.sum(tl.where(mask, middle, 0.0), 0) / groups
        tl.store(running_mean + channel, old + weight_on_new * (new - old), mask=inside)
        old = tl.load(running_variance + channel, mask=inside, other=0.0).to(tl.float32)
        new = tl.sum(tl.where(mask, variance, 0.0), 0) / groups * (rows / (rows - 1))
        tl.store(running_variance + channel, old + weight_on_new * (new - old), mask=inside)


@triton.jit
def _write(images, slopes, mean, scale, total, weight, bias, result, rows, channels, BACKWARD: tl.constexpr,
           WEIGHT: tl.constexpr, BIAS: tl.constexpr, R: tl.constexpr, C: tl.constexpr):  # fmt: skip
    # Some normalized images x, or their gradients weight / σ · (slope − mean of slope − x · mean of slope · x).
    group, groups = tl.program_id(1).to(tl.int64), tl.num_programs(1)
    channel, row = tl.program_id(2) * C + tl.arange(0, C), tl.program_id(0) * R + tl.arange(0, R)
    inside, place = channel < channels, group * channels + channel
    middle, inverse = tl.load(mean + place, mask=inside, other=0.0), tl.load(scale + place, mask=inside, other=0.0)
    factor = inverse
    if WEIGHT:
        factor *= tl.load(weight + channel, mask=inside, other=0.0).to(tl.float32)
    mask = (row < rows)[:, None] & inside[None, :]
    at = (group * rows + row)[:, None] * channels + channel[None, :]
    value = tl.load(images + at, mask=mask, other=0.0).to(tl.float32) - middle[None, :]
    if BACKWARD:
        slope = tl.load(slopes + at, mask=mask, other=0.0).to(tl.float32)
        even = tl.load(total + place, mask=inside, other=0.0) / rows
        tilt = inverse * inverse * tl.load(total + groups * channels + place, mask=inside, other=0.0) / rows
        value = (slope - even[None, :] - value * tilt[None, :]) * factor[None, :]
    else:
        value *= factor[None, :]
        if BIAS:
            value += tl.load(bias + channel, mask=inside, other=0.0).to(tl.float32)[None, :]
    tl.store(result + at, value.to(result.dtype.element_ty), mask=mask)


def sums(
    images: Float[Tensor, "g_n c"], slopes: Tensor | None, mean: Tensor | None, groups: int
) -> Float[Tensor, "s 2 g c"]:
    """In each stretch of a group, the sums of o and of (image − center) · o. Forwards, the center is the group's first
    row, and o is image − center; backwards, it is the group's mean, and o the slopes, which are gradients."""
    rows, channels = len(images) // groups, images.shape[1]
    blocks = triton.cdiv(channels, _CHANNELS)
    stretches = max(1, min(_PROGRAMS // (groups * blocks), triton.cdiv(rows, _ROWS)))
    result = torch.empty((stretches, 2, groups, channels), dtype=torch.float32, device=images.device)
    center, step = (images, rows * channels) if mean is None else (mean, channels)
    _launch(_sum_up, (stretches, groups, blocks), images, images if slopes is None else slopes, center, step, result,
            rows, channels, slopes is not None, R=_ROWS, C=_CHANNELS)  # fmt: skip
    return result


def finish(
    images: Float[Tensor, "g_n c"],
    sums: Float[Tensor, "s 2 g c"],
    running: tuple[Float[Tensor, "c"], Float[Tensor, "c"]] | None,
    weight_on_new: float,
    eps: float,
) -> tuple[Float[Tensor, "g c"], Float[Tensor, "g c"]]:
    """Mean and 1 / √(variance + ε) of each group. Running mean and variance move towards the average over groups."""
    stretches, _, groups, channels = sums.shape
    mean, scale = (torch.empty_like(sums[0, 0]) for _ in range(2))
    many = triton.next_power_of_2(groups), triton.next_power_of_2(stretches)
    block = max(1, min(_CHANNELS, _TILE // (many[0] * many[1])))
    _launch(_finish, (triton.cdiv(channels, block),), images, sums, mean, scale, *(running or (mean, scale)),
            len(images) // groups, channels, groups, stretches, eps, weight_on_new, running is not None,
            G=many[0], S=many[1], C=block)  # fmt: skip
    return mean, scale


def write(
    result: Float[Tensor, "g_n c"],
    images: Float[Tensor, "g_n c"],
    statistics: tuple[Float[Tensor, "g c"], Float[Tensor, "g c"]],
    affine: tuple[Float[Tensor, "c"] | None, Float[Tensor, "c"] | None],
    slopes: Float[Tensor, "g_n c"] | None = None,
    total: Float[Tensor, "2 g c"] | None = None,
) -> None:
    """Fill `result` with the normalized images; with slopes and the sums over their groups, with images' gradients."""
    (mean, scale), (weight, bias) = statistics, affine
    rows, channels = len(images) // len(mean), images.shape[1]
    grid = triton.cdiv(rows, 2 * _ROWS), len(mean), triton.cdiv(channels, _CHANNELS)
    given = (images if tensor is None else tensor for tensor in (total, weight, bias))
    _launch(_write, grid, images, images if slopes is None else slopes, mean, scale, *given, result, rows, channels,
            slopes is not None, weight is not None, bias is not None, R=2 * _ROWS, C=_CHANNELS)  # fmt: skip


def _launch(kernel: Any, grid: tuple[int, ...], *values: Any, **sizes: int) -> None:
    kernel[grid](*values, **sizes)  # as `Any`, since type checkers read a kernel's constants as other types
