"""Images in NumPy files: one array of pixels, perhaps one of labels.

n: images   h, w: height and width in pixels
"""

import zipfile
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from vantage.data.sources.source import spread, stamp_of_files
from vantage.errors import DataError
from vantage.storage.cache import hash_of

_IMAGES = ("images", "image", "x", "data")
_LABELS = ("labels", "label", "y", "targets", "target")


class Arrays:
    """Images of one size in a uint8 array: (n, h, w), (n, h, w, 1 or 3) or (n, 1 or 3, h, w), and perhaps n labels.

    Labels are integers (negative for none) or strings. Gray is repeated in the three channels.
    """

    def __init__(
        self, images: "np.ndarray", labels: "np.ndarray | None", origin: str, file: Path | None = None
    ) -> None:
        self._images, self._file = _rgb_last(images, origin), file
        self.classes, self._labels = _classes(labels, len(self._images), origin)

    @classmethod
    def read(cls, path: Path, part: str = "") -> "Arrays":
        """The arrays of an `.npz` (keys such as images, x or x_train, and labels, y or y_train) or of an `.npy` file.

        An `.npy` stays on disk and is read image by image. Pickled objects are refused, for they could run code.
        """
        try:
            if path.suffix.lower() == ".npy":
                if part:
                    raise DataError(f"{path}#{part}: an .npy file holds one array and has no parts. Leave out #{part}")
                return cls(np.load(path, mmap_mode="r", allow_pickle=False), None, str(path), path)
            with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
                images, labels = _choose(list(arrays.keys()), path, part)
                return cls(arrays[images], arrays[labels] if labels else None, f"{path}, array {images}", path)
        except DataError:
            raise
        except (OSError, ValueError, EOFError, zipfile.BadZipFile, AttributeError) as error:
            # NumPy takes what it does not know for a pickle, and tells how to load one, which is never done here.
            why = "it is no such file of plain numbers, or damaged" if "pickle" in str(error) else str(error)
            raise DataError(f"cannot read {path} as a NumPy file: {why}") from error

    def __len__(self) -> int:
        return len(self._images)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB."""
        pixels = np.array(self._images[number])
        return torch.from_numpy(pixels).permute(2, 0, 1).expand(3, -1, -1).contiguous()

    def label(self, number: int) -> int | None:
        """The index of the image's class, or None."""
        return None if self._labels[number] < 0 else int(self._labels[number])

    def name(self, number: int) -> str:
        """The image's row in the array."""
        return f"row {number}"

    def fingerprint(self) -> str:
        """A hash of the shape, all labels, and the pixels of at most 32 images evenly spaced."""
        facts = [repr(self._images.shape).encode(), "\n".join(self.classes).encode(), self._labels.tobytes()]
        return hash_of(facts + [self._images[number].tobytes() for number in spread(len(self))])

    def stamp(self) -> str:
        """A hash of the size and time of change of the file, or of all pixels where they come from none."""
        return stamp_of_files([self._file]) if self._file else hash_of(image.tobytes() for image in self._images)


def _choose(keys: list[str], path: Path, part: str) -> tuple[str, str | None]:
    """The keys of the images and of the labels, those of a part where one is asked for."""

    def named(words: tuple[str, ...], part: str) -> str | None:
        wanted = [f"{word}_{part}" for word in words] + [f"{part}_{word}" for word in words] if part else list(words)
        return next((key for key in wanted if key in keys), None)

    images = named(_IMAGES, part) or (part if part in keys else None)
    if images:
        return images, named(_LABELS, part)
    parts = sorted({p for key in keys for word in _IMAGES for p in [_part(key, word)] if p})
    asked = f"{path}#{part}" if part else str(path)
    todo = (
        f"Name a part: {', '.join(f'{path.name}#{p}' for p in parts)}"
        if parts
        else ("Save the images as uint8 under the key 'images' and the labels, if any, under 'labels'")
    )
    raise DataError(
        f"{asked} has no array of images by a name we know: its arrays are {', '.join(sorted(keys))}. {todo}"
    )


def _part(key: str, word: str) -> str:
    """What is left of a key such as x_train or train_x when the word is taken away; "" when it is no such key."""
    if key.startswith(word + "_"):
        return key[len(word) + 1 :]
    return key[: -len(word) - 1] if key.endswith("_" + word) else ""


def _rgb_last(images: "np.ndarray", place: str) -> "np.ndarray":
    """A view of shape (n, h, w, 1 or 3)."""
    if images.dtype != np.uint8:
        raise DataError(
            f"{place} holds {images.dtype} values: images must be uint8, 0 to 255. Convert them and save again"
        )
    if images.ndim == 3 and images.size:
        return images[..., None]
    if images.ndim == 4 and images.size:
        if images.shape[3] in (1, 3):
            return images
        if images.shape[1] in (1, 3):
            return images.transpose(0, 2, 3, 1)
    raise DataError(
        f"{place} has the shape {images.shape}: images must be (n, h, w), (n, h, w, 3) or (n, 3, h, w), n at least 1"
    )


def _classes(labels: "np.ndarray | None", count: int, place: str) -> tuple[tuple[str, ...], "np.ndarray"]:
    """Class names and labels from an array of integers or strings."""
    if labels is None:
        return (), np.full(count, -1, dtype=np.int32)
    labels = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.shape != (count,) or labels.dtype.kind not in "iubUS":
        raise DataError(
            f"{place}: the labels have shape {labels.shape} and type {labels.dtype}, but there are {count} images. "
            "Give one integer or one word for each image"
        )
    if labels.dtype.kind in "US":
        names, index = np.unique(labels.astype(str), return_inverse=True)
        return tuple(names.tolist()), index.astype(np.int32)
    most = int(labels.max())
    if most >= 1_000_000:
        raise DataError(f"{place}: a label is {most}. Number the classes from 0")
    return tuple(str(number) for number in range(most + 1)), labels.astype(np.int32)
