"""Resizing as two small matrix products, and lines of pixels that are mirrored at their ends.

b: images   c: channels   h, w: size of the images in pixels   y, x: size of the results   n: pixels of a line

A bilinear resize is linear in the pixels and separable, so it is rows @ image @ columns with an interpolation matrix
per image. The matrices equal torchvision's resize of tensors, antialiasing included; sampling grids would read past a
crop's edge. Resizes are as precise as float32 matrix products are set to be (`torch.set_float32_matmul_precision`).
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["interpolation", "reflection", "resample"]


def interpolation(
    offset: Float[Tensor, "b"], length: Float[Tensor, "b"], source: int, target: int
) -> Float[Tensor, "b {target} {source}"]:
    """Matrices that take `length` pixels from `offset` on, in a line of `source` pixels, and resize them to `target`.

    Bilinear, and antialiased if the line shrinks: a triangle as wide as the scale, cut at the ends and normalized to
    sum 1.
    """
    scale = length / target
    steps = torch.arange(target, device=offset.device, dtype=offset.dtype) + 0.5
    pixels = torch.arange(source, device=offset.device, dtype=offset.dtype)
    center = offset.unsqueeze(1) + steps * scale.unsqueeze(1) - 0.5
    if source <= target:  # nothing can shrink: two taps, whose weights sum to 1 while the center stays inside
        first, last = offset.unsqueeze(1), (offset + length - 1).unsqueeze(1)
        center = torch.minimum(torch.maximum(center, first), last)
        return torch.sub(1, (center.unsqueeze(2) - pixels).abs_()).clamp_min_(0)
    reach = scale.clamp_min(1)[:, None, None]
    weight = torch.sub(1, (center.unsqueeze(2) - pixels).abs_().div_(reach)).clamp_min_(0)
    inside = (pixels >= offset.unsqueeze(1)) & (pixels < (offset + length).unsqueeze(1))
    weight.mul_(inside.unsqueeze(1))
    return weight.div_(weight.sum(2, keepdim=True))


def resample(
    images: Float[Tensor, "b c h w"], rows: Float[Tensor, "#b y h"], columns: Float[Tensor, "#b w x"]
) -> Float[Tensor, "b c y x"]:
    """rows @ image @ columns, for every image and channel."""
    count, channels, height, width = images.shape
    wide = torch.matmul(images.reshape(count, channels * height, width), columns)
    return torch.matmul(rows.unsqueeze(1), wide.view(count, channels, height, columns.shape[2]))


def reflection(size: int, radius: int) -> Int[Tensor, "n"]:
    """The indices of the pixels from -radius to size + radius - 1 when the line is mirrored at its end pixels."""
    if size == 1:
        return torch.zeros(1 + 2 * radius, dtype=torch.int64)
    period = 2 * (size - 1)
    index = torch.arange(-radius, size + radius).remainder(period)
    return torch.minimum(index, period - index)
