"""What a user's own backbone computes with beside its weights, which its printed form need not show."""

from collections.abc import Iterator

from torch import nn

from vantage.composition.fitting import parts_of
from vantage.composition.own_code import code_of
from vantage.encoders.encoder import Encoder
from vantage.encoders.roles import Role

__all__ = ["own_backbone"]

_PRINTED = ("torch", "torchvision", "timm", "vantage")
"""Packages whose modules print differently if they compute differently."""


def own_backbone(role: Role, backbone: nn.Module) -> Iterator[str]:
    """The settings of the backbones of a role, and the code of their classes, as far as these are no library's: two
    that only pool differently have equal weights."""
    choices = [part.backbone for part in parts_of(role) if isinstance(part, Encoder) and _is_own(type(part.backbone))]
    kinds = dict.fromkeys(map(type, [*choices, *backbone.modules()]))
    yield from map(repr, choices)
    yield from dict.fromkeys(code for kind in filter(_is_own, kinds) for code in code_of(kind))


def _is_own(kind: type) -> bool:
    return kind.__module__.partition(".")[0] not in _PRINTED
