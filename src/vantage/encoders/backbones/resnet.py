"""Backbones: from images to pooled features.

b: images   c: channels   h: height   w: width of an image   d: width of the features

A backbone is a frozen choice; `build` returns a module from images (b, c, h, w) to features (b, d) with `.width` = d.
The modules are those of torchvision and timm without their classifiers, so their `state_dict` can be loaded there
unchanged.
"""

import difflib
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from torch import nn

from vantage.errors import UserError


@runtime_checkable
class Backbone(Protocol):
    """A frozen choice of a network from images to pooled features."""

    def build(self) -> nn.Module:
        """A freshly initialized module from images (b, c, h, w) to features (b, d), with `.width` = d."""
        ...


@dataclass(frozen=True)
class ResNet:
    """torchvision's residual networks (arXiv 1512.03385), without the classifier.

    Features are 512 wide for depths 18 and 34, 2048 for greater depths, times `width_multiplier`. Variants: ResNeXt-50
    32x4d is `ResNet(50, groups=32, width_per_group=4)`, ResNeXt-101 32x8d is `ResNet(101, groups=32,
    width_per_group=8)`, and the wide networks 50-2 and 101-2 have `width_per_group=128`, which widens only the 3x3
    convolutions. The networks ×2 and ×4 of contrastive papers (InfoMin, arXiv 2005.10243, Table 6) have a
    `width_multiplier`, which widens all layers.

    The ordinary stem (7x7, stride 2, then a max-pool) shrinks an image fourfold: an image of 32 px would reach the last
    stage as one pixel, one of 64 px as four. For 32 px use `small=True`. For 64 px use `small=True, stem_stride=2`,
    which takes as long as 32 px at stride 1, or stride 1, which takes four times as long. Raises `UserError` for
    combinations that do not exist.
    """

    depth: Literal[18, 34, 50, 101, 152] = 18
    """Number of layers."""
    small: bool = False
    """Stem for small images: a 3x3 convolution with padding 1, and no max-pool."""
    stem_stride: Literal[1, 2] = 1
    """Stride of the small stem: 1 for 32 px, 2 for 64 px."""
    groups: int = 1
    """Groups of the 3x3 convolutions (ResNeXt: 32); depth 50 and more."""
    width_per_group: int = 64
    """Channels per group of the 3x3 convolutions of the first stage (wide networks: 128); depth 50 and more."""
    zero_init_residual: bool = False
    """Start each block as the identity, with the scale of its last BatchNorm at 0, as in SimCLR."""
    in_channels: int = 3
    """Channels of the images (CMC: 1 for luminance, 2 for color)."""
    width_multiplier: float = 1.0
    """Channels of every layer, including the stem, as a multiple of the usual number: 2 and 4 in wide networks, .5 in
    CMC's narrow ones; a multiple of 1/64. On CPUs with AVX2 only, depths 18 and 34 need 1/8 or more: oneDNN (issue
    6035) writes past its memory in the gradient of a strided 1x1 convolution with fewer than 8 input channels."""

    def __post_init__(self) -> None:
        if self.depth not in LAYERS:
            raise UserError(f"ResNet: depth is {self.depth}; choose one of {', '.join(map(str, LAYERS))}")
        if self.depth < 50 and (self.groups, self.width_per_group) != (1, 64):
            raise UserError(
                f"ResNet: depth {self.depth} was asked for with groups {self.groups} and width_per_group"
                f" {self.width_per_group}, but its blocks have one group of 64; use depth 50 or more"
            )
        if self.stem_stride != 1 and not self.small:
            raise UserError(f"ResNet: stem_stride {self.stem_stride} is for the small stem only; set small=True too")
        for field in ("groups", "width_per_group", "in_channels"):
            if getattr(self, field) < 1:
                raise UserError(f"ResNet: {field} is {getattr(self, field)}; it must be 1 or more")
        stem = 64.0 * self.width_multiplier
        if not (stem.is_integer() and stem * min(self.width_per_group, 64) >= 64):
            raise UserError(
                f"ResNet: width_multiplier is {self.width_multiplier}; every layer needs a whole number of channels, as"
                " with .5, 2 or 4"
            )

    @property
    def stem_width(self) -> int:
        """Channels of the stem and of the first stage's blocks, before their expansion."""
        return round(64 * self.width_multiplier)

    @property
    def width(self) -> int:
        """Width of the features."""
        return (8 if self.depth < 50 else 32) * self.stem_width

    def build(self) -> nn.Module:
        """torchvision's network with the chosen stem and no classifier: a `ResNetFeatures`."""
        from vantage.encoders.backbones.resnet_features import ResNetFeatures, Stem  # only now: it imports torchvision

        size, stride = (3, self.stem_stride) if self.small else (Stem.size, Stem.stride)
        stem = Stem(self.in_channels, self.stem_width, size, stride)
        layers, bottleneck = LAYERS[self.depth], self.depth >= 50
        return ResNetFeatures(layers, bottleneck, stem, self.groups, self.width_per_group, self.zero_init_residual)


LAYERS: dict[int, tuple[int, int, int, int]] = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
"""Blocks in each stage, by depth."""


@dataclass(frozen=True)
class Timm:
    """Any model of timm by name, freshly initialized, without the classifier; needs the extra `timm`.

    `build` raises `UserError` if timm is not installed, the name is unknown, or the model refuses the settings.
    """

    name: str
    """Name as in `timm.list_models()`, such as convnext_tiny or vit_small_patch16_224."""
    in_channels: int = 3
    """Channels of the images."""
    image_size: int | None = None
    """Side of the images in pixels, for models of a fixed size (vision transformers); if omitted, the model's own."""

    def build(self) -> nn.Module:
        """timm's own module with its pooling and no classes."""
        try:
            import timm
        except ImportError as missing:
            raise UserError(
                f"the backbone {self.name} was asked for from timm, which is not installed:"
                " pip install 'vantage-ssl[timm]'"
            ) from missing
        # Names with a source, such as hf-hub:..., would download.
        if ":" in self.name or "/" in self.name or not timm.is_model(self.name):
            raise UserError(f"timm has no model called {self.name!r}; {_suggestion(self.name, timm.list_models())}")
        settings: dict[str, Any] = {"in_chans": self.in_channels}
        if self.image_size is not None:
            settings["img_size"] = self.image_size
        try:
            model = timm.create_model(self.name, pretrained=False, num_classes=0, **settings)
        except (TypeError, ValueError, RuntimeError, AssertionError) as refusal:
            raise UserError(
                f"timm refuses {self.name} with in_channels {self.in_channels}, image_size {self.image_size}:"
                f" {refusal}; leave out image_size, which only models of a fixed size take, or choose another"
            ) from refusal
        # Networks with a layer after the pooling may have more features than their last stage.
        width = getattr(model, "head_hidden_size", None) or getattr(model, "num_features", None)
        setattr(model, "width", width)  # noqa: B010
        width_of(model)
        return model


def _suggestion(name: str, names: list[str]) -> str:
    similar = difflib.get_close_matches(name.split(".")[0], names, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(similar)}?" if similar else "timm.list_models() lists them all"


def width_of(backbone: nn.Module) -> int:
    """Width of the features of a built backbone; raises `UserError` if it has none."""
    width = getattr(backbone, "width", None)
    if not isinstance(width, int) or width < 1:
        raise UserError(
            f"the backbone {type(backbone).__name__} has width {width!r};"
            " its build() must return a module whose .width is the number of features per image"
        )
    return width
