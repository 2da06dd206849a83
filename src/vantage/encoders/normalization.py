"""Which images share the statistics of BatchNorm while training.

b: images   c: channels   g: groups   ...: height and width, or a length, or nothing

BatchNorm gives every image information about the others in its batch. When a query and its key are normalized together,
the network can find the key by that instead of by what the picture shows, and the loss falls while nothing is learned
(MoCo, arXiv 1911.05722, §3.3). Each choice here is applied to a built network by `convert`; parameters, buffers and
their names stay the same, so checkpoints and exports do not depend on the choice.
"""

import sys
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from vantage.errors import UserError


@runtime_checkable
class Normalization(Protocol):
    """A frozen choice of which images share the statistics of BatchNorm."""

    def convert(self, module: nn.Module) -> nn.Module:
        """`module` with its BatchNorm layers replaced; same parameters, same buffers, same names."""
        ...


@dataclass(frozen=True)
class BatchNorm:
    """Statistics over the batch of one process: the network as it is."""

    def convert(self, module: nn.Module) -> nn.Module:
        """`module` itself."""
        return module


@dataclass(frozen=True)
class SplitBatchNorm:
    """Statistics over each of g consecutive parts of the batch, as if g devices each held one.

    On one device shuffle-BN has an effect only with it: permuted keys then share their statistics with other images
    than their queries do. Raises `UserError` in training for a batch that g does not divide.
    """

    groups: int = 8
    """Number of parts, of equal size and two images or more each; MoCo trains on 8 devices."""

    def __post_init__(self) -> None:
        if self.groups < 1:
            raise UserError(f"SplitBatchNorm: groups is {self.groups}; it must be 1 or more")

    def fit_to(self, images: int, batch_size: int) -> "SplitBatchNorm":
        """Fewer groups for small batches: halved until each holds 16 images, half as many as in MoCo."""
        groups = self.groups
        while groups > 1 and batch_size < 16 * groups:
            groups = groups // 2
        return SplitBatchNorm(groups)

    def convert(self, module: nn.Module) -> nn.Module:
        """`module` with every BatchNorm split; raises `UserError` for kinds of BatchNorm that cannot be split."""
        layers = [layer for layer in module.modules() if isinstance(layer, _BatchNorm)]
        refused = {kind for kind in map(type, layers) if kind not in SPLIT_KINDS and not _keeps_activation(kind)}
        if refused:
            raise UserError(_refusal("split", refused))
        for layer in layers:
            # Only the behavior changes: parameters, buffers, hooks and references to the layer stay as they are.
            layer.__class__ = SPLIT_KINDS.get(type(layer), SplitBatchNormAct2d)
            setattr(layer, "groups", self.groups)  # noqa: B010
        return module


@dataclass(frozen=True)
class SyncBatchNorm:
    """Statistics over the joined batch of all processes; with more than one process it needs GPUs.

    With one process it is BatchNorm.
    """

    def convert(self, module: nn.Module) -> nn.Module:
        """`module` with torch's (for timm's fused layers, timm's) synchronized BatchNorm."""
        kinds = {type(layer) for layer in module.modules() if isinstance(layer, _BatchNorm)}
        foreign = kinds - TORCH_KINDS
        if not foreign:
            return nn.SyncBatchNorm.convert_sync_batchnorm(module)
        # torch's own conversion would silently drop the activation inside timm's BatchNorm.
        if all(_keeps_activation(kind) for kind in foreign):
            from timm.layers.norm_act import convert_sync_batchnorm

            return convert_sync_batchnorm(module)
        raise UserError(_refusal("synchronized", foreign))


TORCH_KINDS: frozenset[type[nn.Module]] = frozenset({nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm})
"""The kinds of BatchNorm whose forward pass is torch's own."""


class GroupedStatistics(_BatchNorm):
    """BatchNorm with separate statistics for each of g consecutive parts of the batch in training.

    In evaluation it is exactly BatchNorm.
    """

    groups: int = 1

    def forward(self, input: Float[Tensor, "b c *s"]) -> Float[Tensor, "b c *s"]:
        """Normalize; raises `UserError` in training for a batch that the groups do not divide."""
        if not self.training:
            return super().forward(input)
        self._check_input_dim(input)
        return grouped_batch_norm(self, input, self.groups)


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
"""The grouped counterpart of each of torch's kinds."""


def grouped_batch_norm(norm: _BatchNorm, images: Float[Tensor, "b c *s"], groups: int) -> Float[Tensor, "b c *s"]:
    """Normalize each of `groups` consecutive parts of the batch by its own mean and variance.

    Running statistics are updated once, by the average over the parts. Raises `UserError` for a batch that does not
    divide.
    """
    if len(images) % groups:
        raise UserError(
            f"BatchNorm cannot split a batch of {len(images)} images into {groups} equal groups: choose a batch size"
            f" that is a multiple of {groups}, or another number of groups"
        )
    means, variances, weight_on_new = _running(norm, groups)
    parts = [
        F.batch_norm(part, mean, variance, norm.weight, norm.bias, True, weight_on_new, norm.eps)
        for part, mean, variance in zip(images.chunk(groups), means, variances, strict=True)
    ]
    if norm.running_mean is not None and norm.running_var is not None:
        norm.running_mean.copy_(torch.stack([mean for mean in means if mean is not None]).mean(0))
        norm.running_var.copy_(torch.stack([variance for variance in variances if variance is not None]).mean(0))
    return torch.cat(parts)


def _running(norm: _BatchNorm, groups: int) -> tuple[list[Tensor | None], list[Tensor | None], float]:
    # Every part updates a separate copy, so their average is one update by the average statistics.
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return [None] * groups, [None] * groups, 0.0
    norm.num_batches_tracked.add_(1)
    # As in torch: no momentum means the plain average over all batches so far.
    weight_on_new = 1.0 / float(norm.num_batches_tracked) if norm.momentum is None else norm.momentum
    mean, variance = norm.running_mean, norm.running_var
    return [mean.clone() for _ in range(groups)], [variance.clone() for _ in range(groups)], weight_on_new


def _keeps_activation(kind: type[nn.Module]) -> bool:
    # A network can have one only if timm's layers are loaded, so timm is not imported for this.
    layers = sys.modules.get("timm.layers.norm_act")
    return layers is not None and kind is layers.BatchNormAct2d


def _refusal(verb: str, kinds: set[type[_BatchNorm]]) -> str:
    names = ", ".join(sorted(kind.__name__ for kind in kinds))
    return f"a network with layers of kind {names} cannot have its BatchNorm {verb}; choose BatchNorm() for it"
