"""BatchNorm with statistics over groups of the joint batch, and how each process computes them.

b: images   c: channels   g: groups   w: processes   ...: height and width, or a length, or nothing

The joint batch of a step is cut into g equal groups. It is computed by w processes, in a accumulated parts, one after
another. Each part has g / a whole groups, and each process g / a / w of these. If there are more processes than groups
in a part, w · a / g processes share one group and exchange their statistics.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from vantage import processes
from vantage.encoders.normalization.fused import FusedBatchNorm, can_fuse
from vantage.errors import UserError

__all__ = ["SPLIT_KINDS", "GroupedStatistics", "set_accumulation", "average_statistics", "share_of_groups"]


def share_of_groups(groups: int, parts: int, count: int) -> tuple[int, int]:
    """How many of the joint batch's groups a process has in each of `parts` accumulated parts, and how many of `count`
    processes share each of them. One of the two numbers is 1. Raises `UserError` if there are no equal shares.

    >>> share_of_groups(8, parts=1, count=2), share_of_groups(8, parts=2, count=2), share_of_groups(1, parts=1, count=4)
    ((4, 1), (2, 1), (1, 4))
    """
    whole, rest = divmod(groups, parts)
    if rest:
        raise UserError(
            f"BatchNorm has {_groups(groups)} of the joint batch, which {parts} accumulated parts, computed one after"
            f" another, cannot share equally: choose SplitBatchNorm({parts}), or another multiple of {parts}, for the"
            " normalization of the encoder, or accumulate fewer parts"
        )
    if whole % count and count % whole:
        raise UserError(
            f"BatchNorm has {_groups(groups)} of the joint batch, {whole} in each accumulated part, of which {count}"
            f" processes cannot have equal shares: choose SplitBatchNorm({parts * count}) for the normalization of the"
            " encoder, or another number of devices"
        )
    return max(1, whole // count), max(1, count // whole)


def _groups(groups: int) -> str:
    return "one group" if groups == 1 else f"{groups} groups"


def set_accumulation(module: nn.Module, parts: int) -> None:
    """Set on every grouped layer of a network in how many accumulated parts a joint batch comes."""
    for layer in module.modules():
        if isinstance(layer, GroupedStatistics):
            layer.parts = parts


@torch.no_grad()
def average_statistics(module: nn.Module) -> None:
    """Replace the running statistics of all processes by their mean. They are linear in the statistics of batches, so
    after each step they equal those of one process with the joint batch, to rounding."""
    if processes.count() == 1:
        return
    norms = [norm for norm in module.modules() if isinstance(norm, _BatchNorm) and norm.track_running_stats]
    running = [value for norm in norms for value in (norm.running_mean, norm.running_var) if value is not None]
    processes.add_up(running)
    for value in running:
        value /= processes.count()


class GroupedStatistics(_BatchNorm):
    """BatchNorm that uses, in training, separate statistics for each of g consecutive parts of the joint batch.

    In evaluation it is exactly BatchNorm.
    """

    groups: int = 1
    """Number of groups of the joint batch."""
    parts: int = 1
    """Number of accumulated parts of the joint batch."""

    def _get_name(self) -> str:
        # With one group it prints as torch's own layer, since digests are made of what is printed.
        return type(self).__name__.removeprefix("Split" * (self.groups == 1))

    def forward(self, input: Float[Tensor, "b c *s"]) -> Float[Tensor, "b c *s"]:
        """Normalize; raises `UserError` in training for a batch that cannot be divided into equal groups."""
        if not self.training:
            return super().forward(input)
        self._check_input_dim(input)
        here, extent = share_of_groups(self.groups, self.parts, processes.count())
        if extent > 1:
            return joint_batch_norm(self, input, extent)
        fuse = here > 1 and input.is_cuda and input.dtype != torch.float64 and can_fuse()
        return (fused_batch_norm if fuse else grouped_batch_norm)(self, input, here)


class SplitBatchNorm1d(GroupedStatistics, nn.BatchNorm1d):
    """`nn.BatchNorm1d` in groups."""


class SplitBatchNorm2d(GroupedStatistics, nn.BatchNorm2d):
    """`nn.BatchNorm2d` in groups."""


class SplitBatchNorm3d(GroupedStatistics, nn.BatchNorm3d):
    """`nn.BatchNorm3d` in groups."""


class SplitBatchNormAct2d(GroupedStatistics, nn.BatchNorm2d):
    """`nn.BatchNorm2d` in groups, then the drop and activation layers inside timm's BatchNorm."""

    drop: nn.Module
    act: nn.Module

    def forward(self, input: Float[Tensor, "b c h w"]) -> Float[Tensor, "b c h w"]:
        """Normalize, drop, activate."""
        return self.act(self.drop(super().forward(input)))


SPLIT_KINDS: dict[type[nn.Module], type[GroupedStatistics]] = {
    nn.BatchNorm1d: SplitBatchNorm1d,
    nn.BatchNorm2d: SplitBatchNorm2d,
    nn.BatchNorm3d: SplitBatchNorm3d,
}
"""The grouped counterpart of each of torch's BatchNorm classes."""


def grouped_batch_norm(norm: _BatchNorm, images: Float[Tensor, "b c *s"], groups: int) -> Float[Tensor, "b c *s"]:
    """Normalize each of `groups` consecutive parts of the batch by its own mean and variance.

    Running statistics are updated once, with the average over the parts. Raises `UserError` for a batch that cannot be
    divided equally.
    """
    means, variances, weight_on_new = _running(norm, images, groups)
    parts = [
        F.batch_norm(part, mean, variance, norm.weight, norm.bias, True, weight_on_new, norm.eps)
        for part, mean, variance in zip(
            images.chunk(groups), _each(means, groups), _each(variances, groups), strict=True
        )
    ]
    _keep(norm, means, variances)
    return torch.cat(parts)


def fused_batch_norm(norm: _BatchNorm, images: Float[Tensor, "b c *s"], groups: int) -> Float[Tensor, "b c *s"]:
    """The result of `grouped_batch_norm`, computed for all groups at once, in channels_last and at least float32."""
    _check_groups(images, groups)
    running = norm.running_mean, norm.running_var
    result = FusedBatchNorm.apply(images, norm.weight, norm.bias, *running, groups, _count(norm), norm.eps)
    assert isinstance(result, Tensor)
    return result


def joint_batch_norm(norm: _BatchNorm, images: Float[Tensor, "b c *s"], extent: int) -> Float[Tensor, "b c *s"]:
    """Normalize by mean and variance of the images of `extent` consecutive processes, at least one of which has images.

    Every process must call it at the same time. The gradient is that of the joint batch, since the gathered statistics
    carry gradients. Running statistics are updated with those of the group.
    """
    axes = [0, *range(2, images.ndim)]
    values = images if images.dtype == torch.float64 else images.float()
    if images.numel():
        variance, mean = torch.var_mean(values, axes, correction=0)
    else:  # a detector may have no region on this process
        variance, mean = values.sum(axes), values.sum(axes)
    statistics = torch.stack([variance, mean, torch.full_like(mean, images.numel() // images.shape[1])])
    first = processes.rank() // extent * extent
    variances, means, counts = processes.gather(statistics[None])[first : first + extent].unbind(1)
    weight = counts / counts.sum(0)  # equal in training, where batches are shared equally
    mean = (weight * means).sum(0)
    variance = (weight * (variances + (means - mean).square())).sum(0)  # within processes, and between them
    _follow(norm, mean.detach(), variance.detach(), counts.sum(0))
    scale = torch.rsqrt(variance + norm.eps)
    shape = (1, -1, *[1] * (images.ndim - 2))
    result = (values - mean.view(shape)) * scale.view(shape)
    if norm.affine:
        result = result * norm.weight.view(shape) + norm.bias.view(shape)
    return result.to(images.dtype)


@torch.no_grad()
def _follow(norm: _BatchNorm, mean: Tensor, variance: Tensor, values: Tensor) -> None:
    """Update the running statistics as torch does, with the unbiased variance over `values` values of each channel."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return
    weight_on_new = _count(norm)
    norm.running_mean.lerp_(mean.to(norm.running_mean.dtype), weight_on_new)
    norm.running_var.lerp_((variance * (values / (values - 1).clamp(min=1))).to(norm.running_var.dtype), weight_on_new)


def _running(
    norm: _BatchNorm, images: Float[Tensor, "b c *s"], groups: int
) -> tuple[Float[Tensor, "g c"] | None, Float[Tensor, "g c"] | None, float]:
    """A copy of the running statistics for each group, and the weight of a new batch. Every group updates its own copy;
    their average then equals one update with the average statistics. Raises `UserError` for a batch that cannot be
    divided into equal groups."""
    _check_groups(images, groups)
    weight_on_new = _count(norm)
    if norm.running_mean is None or norm.running_var is None:
        return None, None, 0.0
    return norm.running_mean.repeat(groups, 1), norm.running_var.repeat(groups, 1), weight_on_new


def _check_groups(images: Float[Tensor, "b c *s"], groups: int) -> None:
    if len(images) % groups:
        raise UserError(
            f"BatchNorm cannot split a batch of {len(images)} images into {groups} equal groups: choose a batch size"
            f" that is a multiple of {groups}, or another number of groups"
        )


def _count(norm: _BatchNorm) -> float:
    """Count a batch; returns the weight of its statistics in the running ones."""
    if norm.num_batches_tracked is None:
        return 0.0
    norm.num_batches_tracked.add_(1)
    # As in torch: no momentum means the plain average over all batches so far.
    return 1.0 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum


def _each(statistics: Float[Tensor, "g c"] | None, groups: int) -> list[Float[Tensor, "c"]] | list[None]:
    return [None] * groups if statistics is None else list(statistics.unbind())


def _keep(norm: _BatchNorm, means: Float[Tensor, "g c"] | None, variances: Float[Tensor, "g c"] | None) -> None:
    """Make the running statistics the average over the groups."""
    for running, values in ((norm.running_mean, means), (norm.running_var, variances)):
        if running is not None and values is not None:
            running.copy_(values.mean(0))
