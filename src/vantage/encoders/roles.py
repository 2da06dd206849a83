"""Roles: which network encodes queries, and which encodes keys.

A role is a frozen choice; it builds a module that holds the networks. Queries stay on their process; keys are gathered
from all processes, in the order of ranks.

b: images here   w: processes   p: accumulated parts   d: width
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from vantage import processes
from vantage.encoders.encoder import Encoder, EncoderNetwork
from vantage.errors import UserError

__all__ = ["KeysFirst", "PerView", "Role", "RoleNetworks", "Shared", "encode_jointly", "same_size"]


class RoleNetworks(nn.Module, ABC):
    """The networks of a role. Views are passed by their numbers; every network that needs a view encodes it once."""

    width: int

    @property
    @abstractmethod
    def encoders(self) -> nn.ModuleList:
        """The trained networks, which are the result of a run: one, or one per view."""

    @property
    def key_encoders(self) -> nn.ModuleList:
        """The networks that make keys: one, or one per view. By default the trained networks."""
        return self.encoders

    @abstractmethod
    def queries(self, views: Mapping[int, Tensor]) -> dict[int, Float[Tensor, "b d"]]:
        """Unit vectors of the query views, with gradient."""

    def orders(self, views: Mapping[int, Tensor], seed: int) -> dict[int, Int[Tensor, "n"]]:
        """The random orders that the method `keys` needs for these views, by their number of rows, on the views'
        device. Equal seeds give equal orders on all processes. By default none are needed."""
        return {}

    @abstractmethod
    def keys(
        self, views: Mapping[int, Tensor], queries: Mapping[int, Tensor], orders: Mapping[int, Int[Tensor, "n"]]
    ) -> dict[int, Float[Tensor, "w_b d"]]:
        """Unit vectors of the views that serve as keys or are remembered, gathered from all processes.

        `queries` holds the results of the method `queries` at this step, and `orders` those of the method `orders`.
        They are drawn before, since a compiled or captured step must not draw on the CPU.
        """

    def before_step(self, step: int) -> None:
        """Called before the forward passes of an optimizer step."""

    def after_step(self, step: int) -> None:
        """Called after an optimizer step."""


class KeysFirst(RoleNetworks, ABC):
    """Networks whose keys have no gradient, so that the keys of all accumulated parts of a batch can be encoded before
    the queries of the first one."""

    @abstractmethod
    def keys_of_parts(
        self, views: Mapping[int, Tensor], parts: int, orders: Mapping[int, Int[Tensor, "n"]]
    ) -> dict[int, Float[Tensor, "p_w_b d"]]:
        """The method `keys` for all parts, which follow each other in the views of this process; `orders` are those of
        these views. The keys are gathered from all processes, in the order of the joint batch: the first part of each
        process, then their second, and so on. No more is encoded at once than a part."""


@runtime_checkable
class Role(Protocol):
    """The frozen choice of which networks encode queries and keys."""

    def build(self) -> RoleNetworks:
        """The networks, initialized from torch's default generator."""
        ...


def same_size(views: Mapping[int, Tensor]) -> list[list[int]]:
    """The numbers of the views, those of the same size together."""
    shapes = dict.fromkeys(view.shape for view in views.values())
    return [[number for number, view in views.items() if view.shape == shape] for shape in shapes]


def encode_jointly(views: Mapping[int, Tensor], encode: Callable[[Tensor], Tensor]) -> dict[int, Tensor]:
    """Encode all views of the same size in one batch.

    The batch is ordered image by image, not view by view, so that a consecutive share of it holds all views of its
    images. Batch statistics of g groups then equal those of g processes.
    """
    vectors: dict[int, Tensor] = {}
    for numbers in same_size(views):
        if len(numbers) == 1:
            vectors[numbers[0]] = encode(views[numbers[0]])
            continue
        joint = torch.stack([views[number] for number in numbers], 1).flatten(0, 1)
        if views[numbers[0]].is_contiguous(memory_format=torch.channels_last):
            joint = joint.contiguous(memory_format=torch.channels_last)
        vectors |= dict(zip(numbers, encode(joint).unflatten(0, (-1, len(numbers))).unbind(1), strict=True))
    return vectors


@dataclass(frozen=True)
class Shared:
    """One network for queries and keys; keys have gradients too (SimCLR, IR, PIRL)."""

    encoder: Encoder
    """The network."""

    def build(self) -> "SharedNetworks":
        """One network."""
        return SharedNetworks(self.encoder.build())


class SharedNetworks(RoleNetworks):
    """One network."""

    def __init__(self, network: EncoderNetwork) -> None:
        super().__init__()
        self.network, self.width = network, network.width

    @property
    def encoders(self) -> nn.ModuleList:
        """The network."""
        return nn.ModuleList([self.network])

    def queries(self, views: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Unit vectors, with gradient."""
        return encode_jointly(views, self.network)

    def keys(
        self, views: Mapping[int, Tensor], queries: Mapping[int, Tensor], orders: Mapping[int, Tensor]
    ) -> dict[int, Tensor]:
        """The vectors of the views, with gradient; those of query views are reused."""
        rest = {number: view for number, view in views.items() if number not in queries}
        vectors = {**queries, **encode_jointly(rest, self.network)}
        return {number: processes.gather(vectors[number]) for number in views}


@dataclass(frozen=True)
class PerView:
    """One network for each view, for queries and keys (CMC)."""

    encoders: tuple[Encoder, ...]
    """The network of each view, in order."""

    def __post_init__(self) -> None:
        if not self.encoders:
            raise UserError("PerView() has no encoders: give one for each view")

    def build(self) -> "PerViewNetworks":
        """A network per view."""
        return PerViewNetworks([encoder.build() for encoder in self.encoders])


class PerViewNetworks(RoleNetworks):
    """A network per view; all vectors have the same width."""

    def __init__(self, networks: list[EncoderNetwork]) -> None:
        super().__init__()
        widths = [network.width for network in networks]
        if len(set(widths)) > 1:
            raise UserError(f"views are compared, but the widths of their vectors are {widths}: make them equal")
        self.networks, self.width = nn.ModuleList(networks), widths[0]

    @property
    def encoders(self) -> nn.ModuleList:
        """The networks, by view."""
        return self.networks

    def queries(self, views: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """Unit vectors, with gradient."""
        return {number: self.networks[number](view) for number, view in views.items()}

    def keys(
        self, views: Mapping[int, Tensor], queries: Mapping[int, Tensor], orders: Mapping[int, Tensor]
    ) -> dict[int, Tensor]:
        """The vectors of the views, with gradient; those of query views are reused."""
        rest = {number: view for number, view in views.items() if number not in queries}
        vectors = {**queries, **self.queries(rest)}
        return {number: processes.gather(vectors[number]) for number in views}
