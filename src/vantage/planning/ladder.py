"""The ladder of networks and view sizes, from cheap to expensive, and how many images make each rung worthwhile."""

from dataclasses import dataclass, replace

from vantage.encoders import Backbone, Convolutions, ResNet, ResNet9, backbone_named

__all__ = ["Rung", "rungs", "suitable_size"]

SIZES = ((48, 32), (96, 64))
"""Pairs (largest short side of an image, size of its views), in pixels; larger images get views of 224 pixels."""


@dataclass(frozen=True)
class Rung:
    """A network and a view size, with the number of images that they need."""

    backbone: Backbone | None
    """The network; None means the recipe's network, or the one that the user chose."""

    size: int
    """Side of a view, in pixels."""

    images: int
    """Image presentations (images × epochs) that a run needs before this rung beats the one below. An image with more
    than two queries counts as pairs of them."""


_CPU = (
    Rung(Convolutions(), 32, 0),
    Rung(ResNet9(16, features=256), 32, 20_000),
    Rung(ResNet9(16, stem_stride=2, features=256), 64, 200_000),
    Rung(ResNet9(32, features=512), 32, 1_500_000),
    Rung(ResNet9(32, stem_stride=2, features=512), 64, 1_500_000),
    Rung(ResNet9(32, stem_stride=2, features=512), 96, 2_000_000),
    Rung(ResNet(18, small=True), 32, 10_000_000),
    Rung(ResNet(18, small=True, stem_stride=2), 64, 10_000_000),
    Rung(ResNet(18), 128, 10_000_000),
)
_GPU = (
    Rung(ResNet(18, small=True), 32, 0),
    Rung(ResNet(18, small=True, stem_stride=2), 64, 0),
    Rung(ResNet(18), 128, 100_000),
    Rung(ResNet(18), 224, 1_000_000),
    Rung(ResNet(50, small=True), 32, 30_000_000),
    Rung(ResNet(50, small=True, stem_stride=2), 64, 20_000_000),
    Rung(ResNet(50), 224, 10_000_000),
)
"""Rules of thumb. The CPU values come from pilots on CIFAR-10 (JPEG) with held-out training images, and from published
curves, which show that SimCLR on a ResNet-18 needs half a million images to beat a small network. Two were measured by
`benchmarks/choices.py` in the same processor time: at 23,000 and 58,000 images a linear classifier on a ResNet-9 of
width 16 is above one on four convolutions, on two sets, while kNN changes little; and the ResNet-9 gains by features
that are twice as wide as its last map. The GPU values come from published curves alone."""


def suitable_size(side: int) -> int:
    """The view size in pixels for images with this short side, if time does not matter: 32, 64 or 224."""
    return next((size for most, size in SIZES if side <= most), 224)


def rungs(side: int, on_gpu: bool, size: int | None = None, keep_network: bool = False) -> list[Rung]:
    """The rungs for images with this short side, cheapest first.

    Views are never larger than the images justify, and never shrink from one rung to the next. With `size`, all rungs
    use that size. With `keep_network`, the network is fixed and rungs differ only in size.
    """
    most = suitable_size(side) if size is None else size
    ladder: list[Rung] = []
    for rung in _GPU if on_gpu else _CPU:
        rung = rung if size is None else _at(rung, size)
        rung = replace(rung, backbone=None) if keep_network else rung
        pairs = {(one.backbone, one.size) for one in ladder}
        largest = ladder[-1].size if ladder else 0
        if largest <= rung.size <= most and (rung.backbone, rung.size) not in pairs:
            ladder.append(rung)
    return ladder or [Rung(None if keep_network else Convolutions(), most, 0)]


def _at(rung: Rung, size: int) -> Rung:
    """The rung at another view size, with a suitable stem."""
    backbone = rung.backbone
    if isinstance(backbone, ResNet9):
        backbone = replace(backbone, stem_stride=1 if size <= 48 else 2)
    elif isinstance(backbone, ResNet):
        backbone = backbone_named(f"resnet{backbone.depth}", size)
    return replace(rung, backbone=backbone, size=size)
