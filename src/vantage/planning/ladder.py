"""Networks and sizes of views from cheap to dear, and how many images make the dearer one worth it."""

from dataclasses import dataclass, replace

from vantage.encoders import Backbone, Convolutions, ResNet, ResNet9, backbone_named

__all__ = ["Rung", "rungs", "suitable_size"]

SIZES = ((48, 32), (96, 64))
"""Images whose short side is up to the first are seen at the second, in pixels; larger ones at 224."""


@dataclass(frozen=True)
class Rung:
    """A network and a size of views, with what they cost."""

    backbone: Backbone | None
    """The network; none stands for that of the recipe, or the one that the user chose."""

    size: int
    """Side of a view in pixels."""

    images: int
    """Images, counted each time one is seen, that a run must reach for this to beat the rung below."""


_CPU = (
    Rung(Convolutions(), 32, 0),
    Rung(ResNet9(16), 32, 100_000),
    Rung(ResNet9(16, stem_stride=2), 64, 200_000),
    Rung(ResNet9(32), 32, 1_500_000),
    Rung(ResNet9(32, stem_stride=2), 64, 1_500_000),
    Rung(ResNet9(32, stem_stride=2), 96, 2_000_000),
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
"""Rules of thumb: on a CPU from pilots on CIFAR-10 (JPEG) with held-out training images and from published curves, by
which half a million images are needed before SimCLR on a ResNet-18 is better than a small network; on a GPU from
published curves alone."""


def suitable_size(side: int) -> int:
    """The size of views for images of this short side where time does not matter: 32, 64 or 224 pixels."""
    return next((size for most, size in SIZES if side <= most), 224)


def rungs(side: int, on_gpu: bool, size: int | None = None, keep_network: bool = False) -> list[Rung]:
    """The rungs for images of a short side, from the cheapest.

    Views are never larger than suits the images, and never become smaller on the way up. With `size` all rungs have
    this one. With `keep_network`, the network is fixed and rungs differ only in size.
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
    """The rung at another size of views, with the stem that suits it."""
    backbone = rung.backbone
    if isinstance(backbone, ResNet9):
        backbone = replace(backbone, stem_stride=1 if size <= 48 else 2)
    elif isinstance(backbone, ResNet):
        backbone = backbone_named(f"resnet{backbone.depth}", size)
    return replace(rung, backbone=backbone, size=size)
