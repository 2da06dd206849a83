"""Pictures embedded in the page as WebP; each is made once."""

import base64
import io

from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.views import ViewMaker
from vantage.views.show import picture

__all__ = ["Thumbnails", "address_of", "data_uri", "pixels_of", "views_picture"]


class Thumbnails:
    """Thumbnails of the images of a source, as data URIs."""

    def __init__(self, source: Source, side: int) -> None:
        self.source, self.side = source, side
        self._uris: dict[int, str] = {}

    def __call__(self, number: int) -> str:
        """The thumbnail of an image, at most `side` pixels wide and high."""
        if number not in self._uris:
            image = pixels_of(self.source.image(number))
            image.thumbnail((self.side, self.side))
            self._uris[number] = data_uri(image, 72)
        return self._uris[number]


def views_picture(views: ViewMaker, source: Source, count: int, seed: int) -> str:
    """A picture of `count` evenly spaced images of a source, each with two draws of the views that the network sees.

    Raises `UserError` if the views cannot be made from these images.
    """
    count = min(count, len(source))
    images = [source.image(number * len(source) // count) for number in range(count)]
    return data_uri(picture(views, images, times=2, seed=seed, side=96), 80)


def pixels_of(image: UInt8[Tensor, "3 h w"]) -> Image.Image:
    """The image as a Pillow image."""
    return Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())


def data_uri(image: Image.Image, quality: int) -> str:
    """The image as a data URI, in WebP."""
    file = io.BytesIO()
    image.save(file, "WEBP", quality=quality, method=4)
    return address_of(file.getvalue())


def address_of(content: bytes) -> str:
    """The content of a WebP file as a data URI."""
    return "data:image/webp;base64," + base64.b64encode(content).decode()
