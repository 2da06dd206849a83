"""From the bytes of an image file to RGB, by rules that are the same for every source.

JPEG, PNG, WebP, BMP, TIFF and GIF are read; from a file with several frames, only the first. All become 8-bit RGB:

* gray is repeated in the three channels, palettes are resolved, CMYK and YCbCr are converted as Pillow does, without
  color profiles;
* transparent pixels are composed on white, since the color stored under a transparent pixel is arbitrary;
* 16-bit values keep their high byte (0..65535 becomes 0..255 by `value // 256`);
* floating-point and wider integer pixels, which have no agreed range, are refused;
* the EXIF orientation is applied, so that photographs are upright.

The size is read from the header first, so that a picture beyond the bound is refused before it is decoded.

h, w: height and width in pixels
"""

import io
import os
import re
import struct
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import (
    BmpImagePlugin,
    GifImagePlugin,
    Image,
    ImageOps,
    JpegImagePlugin,
    PngImagePlugin,
    TiffImagePlugin,
    WebPImagePlugin,
)
from torch import Tensor

from vantage.errors import UnreadableImage, UserError, first_line

_VARIABLE = "VANTAGE_MAX_PIXELS"


def _bound() -> int:
    """The pixels that the environment variable gives, or else 80 million. Raises `UserError` if it is no number."""
    text = os.environ.get(_VARIABLE, "").strip() or "80_000_000"
    if not re.fullmatch(r"[1-9][\d_]{0,15}", text, re.ASCII):
        raise UserError(f"{_VARIABLE} is {text!r}: give a number of pixels, such as 200000000")
    return int(text.replace("_", ""))


MAX_PIXELS = _bound()
"""Pictures of more pixels than this are refused as decompression bombs, unless the caller sets another bound: 80
million, or `VANTAGE_MAX_PIXELS`."""

EXTENSIONS = frozenset((".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".webp", ".bmp", ".tif", ".tiff", ".gif"))
"""The file extensions, in lower case, of images."""

# Pillow's readers are called directly: `Image.open` would try other formats too, and warn at its own bound.
_READERS = (
    (b"\xff\xd8\xff", JpegImagePlugin.JpegImageFile),
    (b"\x89PNG\r\n\x1a\n", PngImagePlugin.PngImageFile),
    (b"RIFF", WebPImagePlugin.WebPImageFile),
    (b"GIF8", GifImagePlugin.GifImageFile),
    (b"BM", BmpImagePlugin.BmpImageFile),
    (b"II", TiffImagePlugin.TiffImageFile),
    (b"MM", TiffImagePlugin.TiffImageFile),
)


@cache
def _jpeg_decoder() -> Callable[[Tensor], Tensor] | None:
    """torchvision's operator from the bytes of a JPEG to upright RGB, imported at the first call: torchvision imports
    torch's compiler, which takes as long as torch.

    The operator is called directly: since 0.29 the function around it warns in every process that TorchCodec will
    replace it one day. If the operator is gone, Pillow reads JPEG instead and takes 1.3 times as long.
    """
    from torchvision.io import ImageReadMode

    decode_jpeg = getattr(torch.ops.image, "decode_jpeg", None)
    turn_upright = True  # by the EXIF orientation
    return decode_jpeg and (lambda data: decode_jpeg(data, ImageReadMode.RGB.value, turn_upright))


def is_image_name(name: str) -> bool:
    """Whether a file of this name counts as an image."""
    dot = name.rfind(".")
    return dot > 0 and name[dot:].lower() in EXTENSIONS and not name.startswith("._")


def decode(data: bytes | bytearray, name: str, max_pixels: int = MAX_PIXELS) -> UInt8[Tensor, "3 h w"]:
    """The upright RGB pixels of an encoded image.

    Raises `UnreadableImage`, which carries `name`, for data that is empty, not an image, truncated, damaged, or larger
    than `max_pixels`.
    """
    if not data:
        raise UnreadableImage(name, "the file is empty")
    if data[:3] == b"\xff\xd8\xff":
        header = _jpeg_header(data)
        if header is not None:
            height, width, channels = header
            _check_size(height, width, name, max_pixels)
            if channels in (1, 3) and (decode_jpeg := _jpeg_decoder()):
                content = torch.frombuffer(data if isinstance(data, bytearray) else bytearray(data), dtype=torch.uint8)
                try:
                    return decode_jpeg(content)
                except RuntimeError:
                    pass  # Pillow reads a few more rare forms, and has better error messages
    return _decode_slowly(data, name, max_pixels)


def to_rgb(picture: Image.Image, name: str) -> UInt8[Tensor, "3 h w"]:
    """A Pillow image as upright RGB pixels by the rules above; raises `UnreadableImage`."""
    is_16_bit_png = picture.mode == "I" and picture.format == "PNG"  # older Pillow opens it in this mode
    no_range = picture.mode in ("F", "I") and not is_16_bit_png
    picture = ImageOps.exif_transpose(picture)
    if picture.mode == "F" or picture.mode.startswith("I"):
        gray = np.asarray(picture)
        if no_range:
            raise UnreadableImage(name, f"its pixels ({gray.dtype}) have no agreed range: save it with 8 or 16 bits")
        transparent, picture = picture.info.get("transparency"), Image.fromarray((gray >> 8).astype(np.uint8))
        if isinstance(transparent, int):  # compared in 16 bits, since several 16-bit shades become one of 8 bits
            picture = Image.merge(
                "LA", (picture, Image.fromarray(np.where(gray == transparent, 0, 255).astype(np.uint8)))
            )
    if picture.mode in ("RGBA", "LA", "La", "PA", "RGBa") or "transparency" in picture.info:
        rgba = picture.convert("RGBA")
        picture = Image.alpha_composite(Image.new("RGBA", rgba.size, (255, 255, 255, 255)), rgba)
    pixels = np.array(picture.convert("RGB"))
    return torch.from_numpy(pixels).permute(2, 0, 1).contiguous()


def _decode_slowly(data: bytes | bytearray, name: str, max_pixels: int) -> UInt8[Tensor, "3 h w"]:
    """Decode with Pillow, whose readers fail with many kinds of error on damaged input."""
    reader = next((reader for magic, reader in _READERS if data[: len(magic)] == magic), None)
    if reader is None or (data[:4] == b"RIFF" and data[8:12] != b"WEBP"):
        raise UnreadableImage(name, "it is not a JPEG, PNG, WebP, BMP, TIFF or GIF file")
    if data[:4] == b"\x89PNG" and b"IEND" not in data:
        raise UnreadableImage(name, "it is cut short: a PNG file ends with IEND")
    try:
        if data[:4] == b"RIFF":  # Pillow's reader allocates the whole canvas when it opens
            _check_size(*_webp_size(data), name, max_pixels)
        with reader(io.BytesIO(data)) as picture:
            _check_size(picture.height, picture.width, name, max_pixels)
            return to_rgb(picture, name)
    except UnreadableImage:
        raise
    except Exception as error:
        raise UnreadableImage(name, f"it is damaged ({first_line(error, 200)})") from error


def _check_size(height: int, width: int, name: str, max_pixels: int) -> None:
    if height < 1 or width < 1:
        raise UnreadableImage(name, f"its header states {width} x {height} pixels")
    if height * width > max_pixels:
        raise UnreadableImage(
            name,
            f"{width} x {height} pixels are more than the bound of {max_pixels:,} against decompression bombs: if it is"
            f" a photograph, save it smaller, or raise the bound ({_VARIABLE}={height * width})",
        )


def _jpeg_header(data: bytes | bytearray) -> tuple[int, int, int] | None:
    """Height, width and channels from the frame header of a JPEG, or None when there is none."""
    at = 2
    while at + 10 <= len(data):
        if data[at] != 0xFF:
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # padding
            at += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD8:  # a marker without a body
            at += 2
        elif 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return struct.unpack_from(">HHB", data, at + 5)
        elif marker in (0xD9, 0xDA):
            return None
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _webp_size(data: bytes | bytearray) -> tuple[int, int]:
    """Height and width from the first chunk of a WebP file."""
    kind = bytes(data[12:16])
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[27:30], "little"), 1 + int.from_bytes(data[24:27], "little")
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return 1 + (bits >> 14 & 0x3FFF), 1 + (bits & 0x3FFF)
    width, height = struct.unpack_from("<HH", data, 26)
    return height & 0x3FFF, width & 0x3FFF
