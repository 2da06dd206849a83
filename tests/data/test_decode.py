"""Every format and kind of pixel becomes RGB by the documented rule; what cannot be decoded says so."""

import io
import struct
import zlib
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from vantage.data.decode import MAX_PIXELS, decode, is_image_name
from vantage.errors import DataError, UnreadableImage

COLORS = np.random.default_rng(0).integers(0, 256, (4, 6, 3), dtype=np.uint8)
PICTURE = np.kron(COLORS, np.ones((8, 8, 1), np.uint8))


def encode(picture: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def pixels(data: bytes) -> np.ndarray:
    actual = decode(data, "it")
    assert actual.dtype == torch.uint8
    return actual.permute(1, 2, 0).numpy()


@pytest.mark.parametrize(
    "kind, options",
    [("PNG", {}), ("WEBP", {"lossless": True}), ("BMP", {}), ("TIFF", {}), ("TIFF", {"compression": "lzma"})],
)
def test_lossless_formats_give_the_very_pixels(kind: str, options: dict[str, object]) -> None:
    assert (pixels(encode(Image.fromarray(PICTURE), kind, **options)) == PICTURE).all()


@pytest.mark.parametrize("options", [{}, {"progressive": True}, {"subsampling": 0}])
def test_jpeg_agrees_with_pillow(options: dict[str, object]) -> None:
    data = encode(Image.fromarray(PICTURE), "JPEG", quality=90, **options)
    expected = np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(int)
    assert np.abs(pixels(data).astype(int) - expected).max() <= 2


def test_gray_is_repeated() -> None:
    gray = Image.fromarray(PICTURE[..., 0])
    assert (pixels(encode(gray, "PNG")) == PICTURE[..., :1]).all()
    jpeg = pixels(encode(gray, "JPEG", quality=95))
    assert (jpeg == jpeg[..., :1]).all() and np.abs(jpeg[..., 0].astype(int) - PICTURE[..., 0]).max() < 20


def test_one_bit_is_black_and_white() -> None:
    assert set(np.unique(pixels(encode(Image.fromarray(PICTURE[..., 0] > 127), "PNG")))) == {0, 255}


def test_palette_is_looked_up() -> None:
    picture = Image.fromarray(PICTURE).quantize(64)
    assert (pixels(encode(picture, "PNG")) == np.asarray(picture.convert("RGB"))).all()


@pytest.mark.parametrize("kind, options", [("PNG", {}), ("WEBP", {"lossless": True, "exact": True}), ("TIFF", {})])
def test_what_is_transparent_is_laid_on_white(kind: str, options: dict[str, object]) -> None:
    alpha = np.full((*PICTURE.shape[:2], 1), 255, np.uint8)
    alpha[:16], alpha[16:24] = 0, 128
    actual = pixels(encode(Image.fromarray(np.concatenate([PICTURE, alpha], 2)), kind, **options))
    assert (actual[:16] == 255).all()
    half = (PICTURE[16:24].astype(float) * 128 + 255 * 127) / 255
    assert np.abs(actual[16:24] - half).max() <= 1
    assert (actual[24:] == PICTURE[24:]).all()


def test_transparent_color_of_a_palette_is_white() -> None:
    picture = Image.new("P", (4, 4), 1)
    picture.putpalette([255, 0, 0, 0, 255, 0])
    picture.putpixel((0, 0), 0)
    actual = pixels(encode(picture, "PNG", transparency=0))
    assert actual[0, 0].tolist() == [255, 255, 255] and actual[1, 1].tolist() == [0, 255, 0]


def test_cmyk_jpeg_as_pillow_converts_it() -> None:
    data = encode(Image.fromarray(PICTURE).convert("CMYK"), "JPEG", quality=95)
    assert (pixels(data) == np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))).all()
    assert np.abs(pixels(data).astype(int) - PICTURE).mean() < 12


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_of_16_bits_the_high_byte_is_kept(kind: str) -> None:
    values = np.array([[0, 255, 256, 257], [32767, 32768, 65279, 65535]], np.uint16)
    assert (pixels(encode(Image.fromarray(values), kind))[..., 0] == values // 256).all()


def test_16_bit_color() -> None:
    values = np.random.default_rng(1).integers(0, 65536, (3, 5, 3), dtype=np.uint16)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    data = png(struct.pack(">IIBBBBB", 5, 3, 16, 2, 0, 0, 0), zlib.compress(rows))
    assert (pixels(data) == values // 256).all()


def test_floating_point_is_refused() -> None:
    with pytest.raises(UnreadableImage, match="no agreed range"):
        decode(encode(Image.fromarray(np.ones((2, 2), np.float32)), "TIFF"), "it")


def test_wider_integers_are_refused() -> None:
    """Their range is not known: 0 to 255 in 32 bits would become black if they were taken for 16."""
    with pytest.raises(UnreadableImage, match="no agreed range"):
        decode(encode(Image.fromarray(np.full((2, 2), 128, np.int32)), "TIFF"), "it")


def test_one_transparent_shade_of_16_bits_is_white() -> None:
    values = np.array([[300, 301], [65535, 300]], np.uint16)
    actual = pixels(encode(Image.fromarray(values), "PNG", transparency=300))[..., 0]
    assert actual.tolist() == [[255, 1], [255, 255]], "the shade beside it has the same high byte, and stays"


@pytest.mark.parametrize("missing", [5, 8, 13, 20])
def test_a_png_without_its_end_is_refused(missing: int) -> None:
    data = encode(Image.fromarray(PICTURE), "PNG")
    assert decode(data + b"trailing", "it") is not None
    with pytest.raises(UnreadableImage, match="cut short|damaged"):
        decode(data[:-missing], "it")


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_first_frame_of_several(kind: str) -> None:
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "lime", "blue")]
    options = {"lossless": True} if kind == "WEBP" else {}
    actual = pixels(encode(frames[0], kind, save_all=True, append_images=frames[1:], **options))
    assert (actual == [255, 0, 0]).all()


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_exif_orientation_is_applied(kind: str, orientation: int) -> None:
    upright = np.zeros((16, 32, 3), np.uint8)
    upright[:8, :16] = [250, 0, 0]
    upright[8:, 16:] = [0, 0, 250]
    stored_pixels: dict[int, Callable[[np.ndarray], np.ndarray]] = {
        1: lambda x: x,
        2: lambda x: x[:, ::-1],
        3: lambda x: x[::-1, ::-1],
        4: lambda x: x[::-1],
        5: lambda x: x.transpose(1, 0, 2),
        6: lambda x: np.rot90(x, 1),
        7: lambda x: np.rot90(x, 2).transpose(1, 0, 2),
        8: lambda x: np.rot90(x, -1),
    }
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = Image.fromarray(np.ascontiguousarray(stored_pixels[orientation](upright)))
    options = (
        {"quality": 100}
        | ({"subsampling": 0} if kind == "JPEG" else {})
        | ({"lossless": True} if kind == "WEBP" else {})
    )
    actual = pixels(encode(picture, kind, exif=exif, **(options if kind != "PNG" else {})))
    assert actual.shape == upright.shape
    assert np.abs(actual.astype(int) - upright).max() < 8


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF"])
def test_one_pixel(kind: str) -> None:
    assert pixels(encode(Image.new("RGB", (1, 1), "white"), kind)).tolist() == [[[255, 255, 255]]]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF"])
def test_cut_short(kind: str) -> None:
    noise = Image.fromarray(np.random.default_rng(2).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    data = encode(noise, kind)
    for length in (1, 3, 5, 13, 27, len(data) // 2, len(data) * 9 // 10):
        with pytest.raises(UnreadableImage, match="it|cannot") as error:
            decode(data[:length], "photos/it")
        assert error.value.name == "photos/it" and error.value.reason


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "empty"),
        (b"this is a text, not a photograph", "not a JPEG, PNG"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a JPEG, PNG"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n", "not a JPEG, PNG"),
        (b"RIFF\x10\0\0\0WAVEfmt ", "not a JPEG, PNG"),
        (b"\xff\xd8\xff", "damaged"),
        (b"\xff\xd8\xff\xe0\0\0" * 9, "damaged"),
        (b"\0" * 5000, "not a JPEG, PNG"),
    ],
)
def test_no_image(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadableImage, match=reason):
        decode(data, "it")


def png(header: bytes, body: bytes) -> bytes:
    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


def bombs() -> dict[str, bytes]:
    small = Image.new("RGB", (8, 8))
    jpeg = bytearray(encode(small, "JPEG"))
    frame = jpeg.index(b"\xff\xc0")
    jpeg[frame + 5 : frame + 9] = struct.pack(">HH", 60000, 60000)
    gif = bytearray(encode(small, "GIF"))
    gif[6:10] = struct.pack("<HH", 65535, 65535)
    bmp = bytearray(encode(small, "BMP"))
    bmp[18:26] = struct.pack("<ii", 50000, 50000)
    lossless = bytearray(encode(small, "WEBP", lossless=True))
    lossless[21:25] = struct.pack("<I", (16383 << 14) | 16383)
    lossy = bytearray(encode(small, "WEBP"))
    lossy[26:30] = struct.pack("<HH", 16383, 16383)
    return {
        "jpeg": bytes(jpeg),
        "png": png(struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0), zlib.compress(bytes(1000))),
        "gif": bytes(gif),
        "bmp": bytes(bmp),
        "webp lossless": bytes(lossless),
        "webp lossy": bytes(lossy),
    }


@pytest.mark.parametrize("kind", list(bombs()))
def test_a_bomb_is_refused_by_its_header(kind: str) -> None:
    with pytest.raises(UnreadableImage, match="more than the bound"):
        decode(bombs()[kind], "it")


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_the_bound_can_be_stated(kind: str) -> None:
    data = encode(Image.new("RGB", (20, 10)), kind)
    assert decode(data, "it", max_pixels=200).shape == (3, 10, 20)
    with pytest.raises(
        UnreadableImage,
        match="20 x 10 pixels are more than the bound of 199 .*: if it is a photograph, save it smaller",
    ):
        decode(data, "it", max_pixels=199)
    assert MAX_PIXELS > 50_000_000


@given(
    data=st.binary(max_size=200),
    kind=st.sampled_from(["JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF"]),
    at=st.integers(0, 400),
)
def test_damage_anywhere_is_an_image_or_an_unreadable_one(data: bytes, kind: str, at: int) -> None:
    good = encode(Image.fromarray(PICTURE), kind)
    try:
        assert decode(good[:at] + data + good[at + len(data) :], "it", max_pixels=1_000_000).shape[0] == 3
    except UnreadableImage as error:
        assert isinstance(error, DataError) and isinstance(error, ValueError)


@pytest.mark.parametrize(
    "name, is_image",
    [("a.JPG", 1), ("b.jpeg", 1), ("c.tiff", 1), ("x.txt", 0), ("jpg", 0), (".png", 0), ("._a.jpg", 0)],
)
def test_names_of_images(name: str, is_image: int) -> None:
    assert is_image_name(name) == bool(is_image)
