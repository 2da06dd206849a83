"""Which ResNet a recipe takes at which image size."""

from vantage.encoders import ResNet

__all__ = ["SMALL", "resnet"]

SMALL = 96
"""Images up to this size, in pixels, get the small-image variants."""


def resnet(size: int, zero_init_residual: bool = False) -> ResNet:
    """ResNet-50 as in the papers; ResNet-18 for small images, with the small stem, of stride 2 above 48 pixels."""
    if size > SMALL:
        return ResNet(50, zero_init_residual=zero_init_residual)
    return ResNet(18, small=True, stem_stride=1 if size <= 48 else 2, zero_init_residual=zero_init_residual)
