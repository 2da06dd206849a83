"""A role whose keys come from a momentum encoder: a slowly moving average of the network."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from vantage import draws, processes
from vantage.encoders.encoder import Encoder, EncoderNetwork
from vantage.encoders.normalization.grouped import GroupedStatistics
from vantage.encoders.normalization.running import RunningStatistics
from vantage.encoders.roles import KeysFirst, encode_jointly, same_size
from vantage.schedules import Constant, Schedule

__all__ = ["Momentum", "MomentumNetworks"]


@dataclass(frozen=True)
class Momentum:
    """A momentum encoder makes the keys: an exponential moving average of the network, without a gradient (MoCo, arXiv
    1911.05722).

    Only parameters are averaged; the momentum encoder computes its own batch statistics, in training mode. Keys go
    through shuffle-BN: they are put in a random order over all processes and accumulated parts, so that a key's batch
    statistics come from other images than its query's. On one process this has an effect only with `SplitBatchNorm`,
    whose groups then take the place of processes.
    """

    encoder: Encoder
    """The network; the momentum encoder starts as an exact copy."""

    momentum: Schedule = Constant(0.999)
    """Weight of the momentum encoder's own parameters, by step."""

    after_step: bool = False
    """Whether the copy is updated after the optimizer step, instead of before the next keys as in the MoCo release.
    With constant momentum the keys are the same either way, and only the state in a checkpoint differs; a schedule is
    read one step earlier."""

    shuffle: Literal["images", "keys"] = "images"
    """What shuffle-BN permutes: images, whose views stay together, or every key separately (JCL's supplement, section
    3). With one key per image both are the same."""

    def build(self) -> "MomentumNetworks":
        """The network and its copy."""
        return MomentumNetworks(self.encoder.build(), self)


class MomentumNetworks(KeysFirst):
    """A network and its momentum encoder."""

    def __init__(self, network: EncoderNetwork, choice: Momentum) -> None:
        super().__init__()
        self.network, self.width = network, network.width
        self.slow = copy.deepcopy(network).requires_grad_(False)
        self.momentum, self.follows_after_step = choice.momentum, choice.after_step
        self.shuffle_keys = choice.shuffle == "keys"
        self.has_groups = any(isinstance(layer, GroupedStatistics) for layer in network.modules())

    @property
    def encoders(self) -> nn.ModuleList:
        """The trained network, not its copy."""
        return nn.ModuleList([self.network])

    @property
    def key_encoders(self) -> nn.ModuleList:
        """The momentum encoder."""
        return nn.ModuleList([self.slow])

    def queries(self, views: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Unit vectors of the trained network, with gradient."""
        return encode_jointly(views, self.network)

    def orders(self, views: Mapping[int, Tensor], seed: int) -> dict[int, Tensor]:
        """The orders of shuffle-BN: of all images or, if every key is shuffled, of all keys of each size."""
        if processes.count() == 1 and not self.has_groups:
            return {}
        device = next(iter(views.values())).device
        groups = same_size(views) if self.shuffle_keys else [[number] for number in views]
        rows = {sum(len(views[number]) for number in numbers) * processes.count() for numbers in groups}
        return {count: draws.permutation(count, seed).to(device, non_blocking=True) for count in rows}

    def keys(
        self, views: Mapping[int, Tensor], queries: Mapping[int, Tensor], orders: Mapping[int, Tensor]
    ) -> dict[int, Tensor]:
        """Unit vectors of the momentum encoder, without gradient."""
        return self.keys_of_parts(views, 1, orders)

    @torch.no_grad()
    def keys_of_parts(self, views: Mapping[int, Tensor], parts: int, orders: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Unit vectors of the momentum encoder, without gradient. Keys are shuffled over all parts."""
        if self.shuffle_keys and orders:
            return encode_jointly(views, lambda keys: self._encode({0: keys}, parts, orders)[0])
        return self._encode(views, parts, orders)

    def _encode(self, views: Mapping[int, Tensor], parts: int, orders: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Vectors of the views of all processes, in the order of the joint batch, encoded part by part and, if there
        are orders, in a random order."""
        joint = {n: processes.gather_joint(view, parts) for n, view in views.items()}
        rows = len(next(iter(joint.values())))
        order = orders.get(rows)
        if order is not None:
            joint = {n: view[order] for n, view in joint.items()}
        statistics = RunningStatistics(self.slow, parts)
        vectors: list[dict[int, Tensor]] = []  # torch's compiler cannot call list[…]
        for part in range(parts):
            batch = {n: processes.own_rows(view.chunk(parts)[part]) for n, view in joint.items()}
            vectors.append({n: processes.gather(each) for n, each in encode_jointly(batch, self.slow).items()})
            statistics.end_part()
        statistics.end()
        return {n: _put_back(torch.cat([each[n] for each in vectors]), order) for n in views}

    def before_step(self, step: int) -> None:
        """Update the momentum encoder before it encodes keys."""
        if not self.follows_after_step:
            self._follow(step)

    def after_step(self, step: int) -> None:
        """Update the momentum encoder here, if `Momentum.after_step` is set."""
        if self.follows_after_step:
            self._follow(step)

    @torch.no_grad()
    def _follow(self, step: int) -> None:
        slow: list[Tensor] = list(self.slow.parameters())
        fast: list[Tensor] = list(self.network.parameters())
        torch._foreach_lerp_(slow, fast, 1.0 - self.momentum(step))  # pyright: ignore[reportPrivateImportUsage]


def _put_back(rows: Tensor, order: Tensor | None) -> Tensor:
    """The rows as they were before they were put in an order."""
    return rows if order is None else torch.empty_like(rows).index_copy_(0, order, rows)
