"""Images, each with a mask: the class of every pixel, as index PNGs in a separate folder.

An image and its mask have the same path below their folders, except for the extension: `images/a/1.jpg` and
`masks/a/1.png`.

h, w: height and width in pixels   n: images chosen
"""

import io
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int, UInt8
from PIL import PngImagePlugin
from torch import Tensor

from vantage import draws
from vantage.data.decode import MAX_PIXELS
from vantage.data.sources.folder import Folder
from vantage.data.sources.listing import list_images
from vantage.data.sources.source import read_some, stamp_of_files
from vantage.errors import DataError, UnreadableImage, quantity
from vantage.storage.cache import cache_folder, hash_of

__all__ = ["IGNORE_INDEX", "MaskedImages", "open_masked", "split_masked"]

IGNORE_INDEX = 255
"""The index of pixels that have no class and are ignored everywhere."""


class MaskedImages:
    """Images, and for each the class of every pixel. A source of images without labels."""

    def __init__(self, images: Folder, masks: Path, names: Sequence[str], classes: tuple[str, ...]) -> None:
        """`names` are the paths of the masks below their folder, in the order of the images."""
        self.images = images
        self.masks = masks.absolute()  # a notebook may change its folder meanwhile
        self.classes = classes
        self._names = names

    def __len__(self) -> int:
        return len(self.images)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return self.images.image(number)

    def mask(self, number: int) -> UInt8[Tensor, "h w"]:
        """The class of every pixel of one image, or `IGNORE_INDEX`.

        Raises `UnreadableImage` for a file that is not an index PNG, and `DataError` for an index without a class.
        """
        name = self._names[number]
        mask = torch.from_numpy(_indices(self._file_bytes(number), name, self.images.max_pixels))
        indices = mask[mask != IGNORE_INDEX]
        largest = int(indices.max()) if len(indices) else 0
        if self.classes and largest >= len(self.classes):
            raise DataError(
                f"the mask {name} has the index {largest}, but there are {len(self.classes)} classes, counted"
                f" from 0: name all of them (--classes FILE), or use {IGNORE_INDEX} where a pixel has no class"
            )
        return mask

    def label(self, number: int) -> None:
        """None: an image as a whole has no class here."""

    def name(self, number: int) -> str:
        """The image's path below its folder."""
        return self.images.name(number)

    def subset(self, numbers: Int[Tensor, "n"]) -> "MaskedImages":
        """Some of the images, with the same classes."""
        positions: list[int] = numbers.tolist()
        names = [self.images.name(number) for number in positions]
        labels = np.full(len(names), -1, np.int32)
        images = Folder(self.images.root, names, (), labels, 0, self.images.max_pixels)
        return MaskedImages(images, self.masks, [self._names[number] for number in positions], self.classes)

    def with_classes(self, classes: tuple[str, ...]) -> "MaskedImages":
        """The same images with other class names."""
        return MaskedImages(self.images, self.masks, self._names, classes)

    def fingerprint(self) -> str:
        """A hash of the images' fingerprint, the classes, the masks' names and the bytes of at most 32 of them."""
        facts = [self.images.fingerprint().encode(), "\n".join(self.classes).encode(), "\n".join(self._names).encode()]
        return hash_of([*facts, *read_some(len(self), self._file_bytes)])

    def stamp(self) -> str:
        """A hash of the size and modification time of every file."""
        masks = stamp_of_files(os.path.join(self.masks, name) for name in self._names)
        return hash_of([self.images.stamp().encode(), masks.encode()])

    def files(self) -> Iterator[str]:
        """The path of each image's file."""
        return self.images.files()

    def _file_bytes(self, number: int) -> bytes:
        try:
            return (self.masks / self._names[number]).read_bytes()
        except OSError as error:
            raise UnreadableImage(self._names[number], error.strerror or str(error)) from error


def open_masked(paths: str, classes: tuple[str, ...] = (), max_pixels: int = MAX_PIXELS) -> MaskedImages:
    """The images and masks of two folders, written `IMAGES#MASKS`. MASKS is a folder, or its name beside IMAGES.

    Without `classes`, the classes are numbered up to the largest index in the masks, all of which are read to find it.
    Raises `DataError` if a folder is missing, an image has no mask, a mask has no image, or no mask has a class.
    """
    if len(classes) > IGNORE_INDEX:
        raise DataError(f"{len(classes)} classes are too many: an index is one byte, and {IGNORE_INDEX} means no class")
    folder, mark, part = paths.rpartition("#")
    root = Path(os.path.expanduser(folder))
    if not mark or not part or not root.is_dir():
        raise DataError(
            f"{paths}: name two folders with # between them, the images and their masks, such as"
            " nyu/images#nyu/masks or nyu/images#masks"
        )
    masks = next((path for path in (Path(os.path.expanduser(part)), root.parent / part) if path.is_dir()), None)
    if masks is None:
        raise DataError(f"{paths}: there is no folder of masks {part}, nor {root.parent / part}. Check the path")
    names = list_images(root, cache_folder()).names
    mask_of = {_stem(name): name for name in list_images(masks, cache_folder()).names}
    images = Folder(root, names, (), np.full(len(names), -1, np.int32), 0, max_pixels)
    _check_pairs(paths, list(names), mask_of)
    source = MaskedImages(images, masks, [str(mask_of[_stem(name)]) for name in names], classes)
    return source if classes else source.with_classes(_class_numbers(source))


def split_masked(source: MaskedImages) -> tuple[MaskedImages, MaskedImages]:
    """Training and test images: a fifth of all images, always the same ones, is for testing.

    Raises `DataError` for fewer than two images.
    """
    if len(source) < 2:
        raise DataError("a single image cannot be divided into training and test images: name more, or --test")
    order = torch.randperm(
        len(source), generator=torch.Generator().manual_seed(draws.mix(0, draws.Purpose.HELD_OUT_MASKS))
    )
    test_count = max(1, round(0.2 * len(source)))
    return source.subset(order[test_count:].sort().values), source.subset(order[:test_count].sort().values)


def _check_pairs(paths: str, names: list[str], masks: dict[str, str]) -> None:
    stems = [_stem(name) for name in names]
    if not names:
        raise DataError(f"{paths}: there are no images in the first folder. Check the path")
    if len(set(stems)) < len(stems):
        twice = next(stem for stem in stems if stems.count(stem) > 1)
        raise DataError(f"{paths}: two images are called {twice}, so it is unclear whose mask it is: rename one")
    missing = [name for name, stem in zip(names, stems, strict=True) if stem not in masks]
    if missing:
        raise DataError(
            f"{paths}: there is no mask for {len(missing)} of {len(names)} images ({_some(missing)}): a mask has the"
            " path of its image, except for the extension (.png). Add the masks, or remove these images"
        )
    extra = [masks[stem] for stem in masks.keys() - set(stems)]
    if extra:
        count = quantity(len(extra), "mask")
        raise DataError(f"{paths}: there is no image for {count} ({_some(sorted(extra))}): remove what has none")


def _class_numbers(source: MaskedImages) -> tuple[str, ...]:
    largest = -1
    for number in range(len(source)):
        mask = source.mask(number)
        indices = mask[mask != IGNORE_INDEX]
        largest = max(largest, int(indices.max()) if len(indices) else -1)
    if largest < 0:
        raise DataError(f"no mask has a class: all pixels of all {len(source)} masks are {IGNORE_INDEX}")
    return tuple(str(number) for number in range(largest + 1))


def _indices(data: bytes, name: str, max_pixels: int) -> UInt8[np.ndarray, "h w"]:
    try:
        picture = PngImagePlugin.PngImageFile(io.BytesIO(data))
        if picture.mode not in ("L", "P", "1"):
            raise UnreadableImage(
                name, f"a mask holds indices of classes, but this PNG holds {picture.mode}: save one byte a pixel"
            )
        if picture.width * picture.height > max_pixels:
            raise UnreadableImage(name, f"{picture.width} x {picture.height} pixels are more than {max_pixels:,}")
        indices = np.array(picture, dtype=np.uint8)
        # The reader scales gray of 2 and 4 bits to 0..255; the indices are the values in the file.
        factor = {2: 85, 4: 17}.get(data[24], 1) if picture.mode == "L" else 1
        return indices // np.uint8(factor)
    except UnreadableImage:
        raise
    except Exception as error:  # readers fail with many kinds of error on damaged input
        raise UnreadableImage(name, f"it is not an intact PNG of indices ({error})") from error


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _some(names: Iterable[str]) -> str:
    all_names = list(names)
    return ", ".join(all_names[:3]) + (" …" if len(all_names) > 3 else "")
