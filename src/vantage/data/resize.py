"""Resizing one image in whole gray levels.

c: channels   h, w: height and width in pixels
"""

from jaxtyping import UInt8
from torch import Tensor, channels_last

__all__ = ["resize", "resize_to_square"]


def resize(image: UInt8[Tensor, "c h w"], sides: list[int]) -> UInt8[Tensor, "c _ _"]:
    """The image, antialiased as by torchvision and bit-equal to it; `sides`: its shorter side, or height and width.

    Channels come last in memory, as decoders give them: torch is faster that way, and otherwise fails with an
    internal error if an image becomes a single pixel.
    """
    from torchvision.transforms.v2 import functional  # only now: torchvision imports a compiler

    return functional.resize(image[None].contiguous(memory_format=channels_last), sides, antialias=True)[0]


def resize_to_square(image: UInt8[Tensor, "c h w"], side: int) -> UInt8[Tensor, "c _ _"]:
    """The middle of the image whose shorter side has this length."""
    from torchvision.transforms.v2 import functional

    return functional.center_crop(resize(image, [side]), [side, side])
