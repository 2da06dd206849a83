"""The three ways in which InfoMin learns views (Tian et al., arXiv 2005.10243, section 4.2 and Table 5).

Each is a function from the view size to a `ViewLearning` with the paper's values.
"""

from collections.abc import Callable
from dataclasses import replace

from vantage.encoders import LinearHead
from vantage.encoders.backbones.resnet import Backbone
from vantage.encoders.encoder import Encoder
from vantage.recipes.backbones import resnet
from vantage.studies.view_learning.learning import ViewLearning
from vantage.studies.view_learning.terms import LabelInformation, SharedInformation, Term
from vantage.views.augmentation import Augmentation
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.flip import HorizontalFlip

__all__ = ["LEARNINGS", "semi_supervised", "supervised", "unsupervised"]

Pair = tuple[Backbone, Backbone]


def unsupervised(size: int = 64, backbones: Pair | None = None) -> ViewLearning:
    """Reduce shared information: min over g, max over f₁, f₂ of I_NCE(g(X)₁; g(X)₂₃) (Eq. 2). No labels.

    The paper finds it unstable: runs differ greatly, and often reduce the information too far.
    """
    return _learning("unsupervised", size, (_shared_information(size, backbones),))


def supervised(size: int = 64, backbones: Pair | None = None) -> ViewLearning:
    """Views that predict the label: min over g, c₁, c₂ of Eq. 3's two cross-entropies, on labeled images only."""
    return _learning("supervised", size, (_label_information(size, backbones),))


def semi_supervised(size: int = 64, backbones: Pair | None = None) -> ViewLearning:
    """Reduce shared information, but keep the label in both views (Eq. 3): I_NCE of all images, cross-entropies of the
    labeled ones.

    The batch of all images may include labeled ones, whose labels are ignored there.
    """
    return _learning(
        "semi_supervised", size, (_shared_information(size, backbones), _label_information(size, backbones))
    )


LEARNINGS: tuple[Callable[[int, Pair | None], ViewLearning], ...] = (unsupervised, supervised, semi_supervised)
"""All of them, for the command line and the tests."""


def _learning(name: str, size: int, terms: tuple[Term, ...]) -> ViewLearning:
    """The paper does not state the crops; these are those of `recipes.cmc` on small images."""
    crop = RandomResizedCrop(size, (0.2 if size <= 64 else 0.08, 1.0))
    return ViewLearning(name, terms, Augmentation(crop, (HorizontalFlip(0.5),)))


def _backbones(size: int) -> Pair:
    """The paper does not state the networks; these are those of `recipes.cmc`."""
    one, two = (replace(resnet(size), in_channels=channels) for channels in (1, 2))
    return one, two


def _shared_information(size: int, backbones: Pair | None) -> SharedInformation:
    one, two = backbones or _backbones(size)
    return SharedInformation((Encoder(one, LinearHead(128)), Encoder(two, LinearHead(128))))


def _label_information(size: int, backbones: Pair | None) -> LabelInformation:
    return LabelInformation(backbones or _backbones(size))
