"""Which images share the statistics of BatchNorm while training.

BatchNorm gives every image information about the others in its batch. If a query and its key are normalized together,
the network can use that information to find the key without looking at the picture, so the loss falls while nothing is
learned (MoCo, arXiv 1911.05722, §3.3). Each choice here is applied to a built network by `convert`. Parameters, buffers
and their names stay the same, so checkpoints and exports do not depend on the choice.

A choice refers to the joint batch of an optimizer step, over all processes and accumulated parts, so it means the same
on any number of devices. `vantage.encoders.normalization.grouped` computes each process's part of the statistics.
"""

import sys
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from vantage import processes
from vantage.encoders.normalization.grouped import SPLIT_KINDS, GroupedStatistics, SplitBatchNormAct2d
from vantage.errors import UserError


@runtime_checkable
class Normalization(Protocol):
    """A frozen choice of which images share the statistics of BatchNorm."""

    @property
    def groups(self) -> int:
        """Number of equal parts of the joint batch that are normalized separately."""
        ...

    def convert(self, module: nn.Module) -> nn.Module:
        """`module` with its BatchNorm layers replaced; same parameters, same buffers, same names."""
        ...


@dataclass(frozen=True)
class BatchNorm:
    """Statistics over the joint batch, as in SimCLR (arXiv 2002.05709): an unchanged network on one process,
    synchronized BatchNorm on several.

    Accumulated parts are computed one after another and cannot share statistics; with n of them use
    `SplitBatchNorm(n)`.
    """

    @property
    def groups(self) -> int:
        """One: the whole batch."""
        return 1

    def convert(self, module: nn.Module) -> nn.Module:
        """On one process `module` itself; on several, `module` with every BatchNorm synchronized. Raises `UserError`
        for kinds of BatchNorm that cannot be synchronized."""
        return module if processes.count() == 1 else _convert(module, 1, "synchronized; train it on one process")


@dataclass(frozen=True)
class SplitBatchNorm:
    """Statistics over each of g consecutive parts of the joint batch, as if g devices each held one part.

    The groups are spread over all processes and accumulated parts. Of 8 groups, each of 2 processes has 4; with 2
    accumulated parts, each part has 2 of these. On 16 processes, pairs of processes share a group, synchronized. On one
    device, shuffle-BN has an effect only with this choice: permuted keys then share statistics with other images than
    their queries do. If processes and parts cannot have equal shares of the groups, the run is refused before it
    starts.
    """

    groups: int = 8
    """Number of parts, all of the same size, with at least two images each; MoCo trains on 8 devices."""

    def __post_init__(self) -> None:
        if self.groups < 1:
            raise UserError(f"SplitBatchNorm: groups is {self.groups}; it must be 1 or more")

    def fit_to(self, images: int, batch_size: int) -> "SplitBatchNorm":
        """Fewer groups for small batches: halved until each holds at least 16 images, half as many as in MoCo."""
        groups = self.groups
        while groups > 1 and batch_size < 16 * groups:
            groups = groups // 2
        return SplitBatchNorm(groups)

    def convert(self, module: nn.Module) -> nn.Module:
        """`module` with every BatchNorm split; raises `UserError` for kinds of BatchNorm that cannot be split."""
        return _convert(module, self.groups, "split; choose BatchNorm() for it")


def _convert(module: nn.Module, groups: int, refusal: str) -> nn.Module:
    layers = [layer for layer in module.modules() if isinstance(layer, _BatchNorm)]
    for layer in layers:
        if isinstance(layer, GroupedStatistics):
            layer.groups, layer.parts = groups, 1
    layers = [layer for layer in layers if not isinstance(layer, GroupedStatistics)]
    unsupported = {kind for kind in map(type, layers) if kind not in SPLIT_KINDS and not _keeps_activation(kind)}
    if unsupported:
        names = ", ".join(sorted(kind.__name__ for kind in unsupported))
        raise UserError(f"a network with layers of kind {names} cannot have its BatchNorm {refusal}")
    for layer in layers:
        # Only the behavior changes: parameters, buffers, hooks and references to the layer stay valid.
        layer.__class__ = SPLIT_KINDS.get(type(layer), SplitBatchNormAct2d)
        setattr(layer, "groups", groups)  # noqa: B010
    return module


def _keeps_activation(kind: type[nn.Module]) -> bool:
    # A network can have such a layer only if timm is already imported, so it is not imported here.
    layers = sys.modules.get("timm.layers.norm_act")
    return layers is not None and kind is layers.BatchNormAct2d
