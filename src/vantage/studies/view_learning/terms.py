"""The terms of InfoMin's objective for learned views (Tian et al., arXiv 2005.10243, Eq. 2 and 3), as parts.

The views are channels of ĝ(X): one channel, and the two others. g minimizes the weighted sum of the terms: Eq. 2 is
`SharedInformation` alone, Eq. 3 both terms, and the paper's "supervised" is `LabelInformation` alone.

b: images   d: width of the vectors   h, w: height and width in pixels
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from vantage.encoders.backbones.resnet import Backbone, width_of
from vantage.encoders.encoder import Encoder
from vantage.errors import UserError

__all__ = ["LabelInformation", "SharedInformation", "Term", "TermNetwork", "info_nce"]


class TermNetwork(nn.Module, ABC):
    """The networks of a term, and the side that they play on."""

    opposes: bool
    """Whether its networks maximize the term (f₁ and f₂ of Eq. 2), or minimize it with g (c₁ and c₂ of Eq. 3)."""

    labeled: bool
    """Whether the term uses labeled images."""

    weight: float
    """Its weight in the sum."""

    @abstractmethod
    def forward(
        self, one: Float[Tensor, "b _ h w"], two: Float[Tensor, "b _ h w"], label: Int[Tensor, "b"] | None
    ) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, ""]]]:
        """The term, without its weight, and numbers to report."""


@runtime_checkable
class Term(Protocol):
    """The frozen choice of a term."""

    @property
    def labeled(self) -> bool:
        """Whether the term uses labeled images; if not, it uses all images and ignores labels."""
        ...

    def build(self, classes: int) -> TermNetwork:
        """Build its networks, newly initialized, for labels below `classes`."""
        ...


@dataclass(frozen=True)
class SharedInformation:
    """I_NCE(ĝ(X)₁; ĝ(X)₂₃) of all images, which two critics maximize and g minimizes.

    InfoNCE within the batch, in both directions: I_NCE = log N − ½ (L₁₂ + L₂₁) for N images, so at most log N. The
    paper does not say how it computes I_NCE here.
    """

    critics: tuple[Encoder, Encoder]
    """Encoders of the single channel and of the other two, to unit vectors, whose cosines are compared."""

    temperature: float = 0.1
    """τ, what cosines are divided by."""

    weight: float = 1.0
    """Weight of the term; 1 in Eq. 2 and 3."""

    def __post_init__(self) -> None:
        if not (self.temperature > 0 and self.weight > 0):
            raise UserError(
                f"SharedInformation with temperature {self.temperature} and weight {self.weight}: give both above 0"
            )

    @property
    def labeled(self) -> bool:
        """No: the term uses all images."""
        return False

    def build(self, classes: int) -> "SharedNetwork":
        """The two critics."""
        return SharedNetwork(self)


class SharedNetwork(TermNetwork):
    """The network of `SharedInformation`."""

    opposes, labeled = True, False

    def __init__(self, choice: SharedInformation) -> None:
        super().__init__()
        self.weight, self.temperature = choice.weight, choice.temperature
        self.first, self.second = (critic.build() for critic in choice.critics)

    def forward(
        self, one: Float[Tensor, "b _ h w"], two: Float[Tensor, "b _ h w"], label: Int[Tensor, "b"] | None
    ) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, ""]]]:
        """I_NCE in nats."""
        bound = info_nce(self.first(one), self.second(two), self.temperature)
        return bound, {"i_nce": bound.detach()}


def info_nce(first: Float[Tensor, "b d"], second: Float[Tensor, "b d"], temperature: float) -> Float[Tensor, ""]:
    """I_NCE of pairs of unit vectors, in nats; each is compared with all others in the batch, in both directions."""
    logits = first @ second.mT / temperature
    target = torch.arange(len(logits), device=logits.device)
    return math.log(len(logits)) - (F.cross_entropy(logits, target) + F.cross_entropy(logits.mT, target)) / 2


@dataclass(frozen=True)
class LabelInformation:
    """CE(c₁(ĝ(X)₁), y) + CE(c₂(ĝ(X)₂₃), y) of labeled images, which two classifiers and g minimize."""

    backbones: tuple[Backbone, Backbone]
    """Backbones of the classifiers for the single channel and for the other two; a linear layer follows each."""

    weight: float = 1.0
    """Weight of the term; 1 in Eq. 3."""

    def __post_init__(self) -> None:
        if not self.weight > 0:
            raise UserError(f"LabelInformation with weight {self.weight}: give one above 0")

    @property
    def labeled(self) -> bool:
        """Yes."""
        return True

    def build(self, classes: int) -> "LabelNetwork":
        """The two classifiers."""
        return LabelNetwork(self, classes)


class LabelNetwork(TermNetwork):
    """The network of `LabelInformation`."""

    opposes, labeled = False, True

    def __init__(self, choice: LabelInformation, classes: int) -> None:
        super().__init__()
        self.weight = choice.weight
        self.first, self.second = (_classifier(backbone, classes) for backbone in choice.backbones)

    def forward(
        self, one: Float[Tensor, "b _ h w"], two: Float[Tensor, "b _ h w"], label: Int[Tensor, "b"] | None
    ) -> tuple[Float[Tensor, ""], dict[str, Float[Tensor, ""]]]:
        """The sum of the two cross-entropies, in nats; reports each of them and its accuracy."""
        assert label is not None, "this term needs images with labels"
        numbers: dict[str, Tensor] = {}
        total = one.new_zeros(())
        for name, network, view in (("1", self.first, one), ("2", self.second, two)):
            logits = network(view)
            entropy = F.cross_entropy(logits, label)
            total = total + entropy
            numbers[f"cross_entropy_{name}"] = entropy.detach()
            numbers[f"accuracy_{name}"] = (logits.detach().argmax(1) == label).to(logits.dtype).mean()
        return total, numbers


def _classifier(choice: Backbone, classes: int) -> nn.Sequential:
    backbone = choice.build()
    return nn.Sequential(backbone, nn.Linear(width_of(backbone), classes))
