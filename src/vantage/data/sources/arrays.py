"""Images in NumPy files: an array of pixels and, optionally, one of labels.

n: images   h, w: height and width in pixels
"""

import zipfile
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8
from torch import Tensor

from vantage.data.sources.file_stamp import FileStamp
from vantage.data.sources.source import spread, stamp_of_files
from vantage.errors import DataError
from vantage.machine.allocator import memory_of
from vantage.storage.cache import hash_of
from vantage.storage.quiet import quiet_headers

_IMAGES = ("images", "image", "x", "data")
_LABELS = ("labels", "label", "y", "targets", "target")


class Arrays:
    """Images of one size in a uint8 array: (n, h, w), (n, h, w, 1 or 3) or (n, 1 or 3, h, w); optionally n labels.

    Labels are integers (negative for none) or strings. Gray is repeated in the three channels.
    """

    def __init__(
        self, images: "np.ndarray", labels: "np.ndarray | None", origin: str, file: Path | None = None
    ) -> None:
        self._images, self._file = _rgb_last(images, origin), file and file.absolute()
        self._stamp = FileStamp.now(file) if file is not None and isinstance(images, np.memmap) else None
        self.classes, self._labels = _classes(labels, len(self._images), origin)

    @classmethod
    def read(cls, path: Path, part: str = "") -> "Arrays":
        """The arrays of an `.npz` (keys such as images, x or x_train, and labels, y or y_train) or of an `.npy` file.

        An `.npy` stays on disk and is read image by image. Pickled objects are refused, since they could run code.
        """
        try:
            with quiet_headers():
                return cls._read(path, part)
        except DataError:
            raise
        except Exception as error:  # NumPy's readers and those of zip files fail with many kinds of error
            # NumPy takes unknown content for a pickle and explains how to load one, which is never done here.
            why = "it is not a NumPy file of plain numbers, or it is damaged" if "pickle" in str(error) else str(error)
            raise DataError(f"cannot read {path} as a NumPy file: {why}") from error

    @classmethod
    def _read(cls, path: Path, part: str) -> "Arrays":
        if path.suffix.lower() == ".npy":
            if part:
                raise DataError(f"{path}#{part}: an .npy file holds one array and has no parts. Leave out #{part}")
            return cls(np.load(path, mmap_mode="r", allow_pickle=False), None, str(path), path)
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            images, labels = _choose(list(arrays.keys()), path, part)
            _check_sizes(path, (images, labels))
            return cls(arrays[images], arrays[labels] if labels else None, f"{path}, array {images}", path)

    def __len__(self) -> int:
        return len(self._images)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB. Raises `DataError` if an `.npy` changes while it is in use."""
        if self._stamp is not None:
            self._stamp.check()
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
        """A hash of the size and modification time of the file; without a file, of all pixels."""
        return stamp_of_files([self._file]) if self._file else hash_of(image.tobytes() for image in self._images)


def _check_sizes(path: Path, names: tuple[str | None, ...]) -> None:
    """Raises `DataError`, before anything is unpacked, for an array that does not fit in this machine's memory."""
    memory = memory_of("cpu")
    with zipfile.ZipFile(path) as archive:
        sizes = {part.filename: part.file_size for part in archive.infolist()}
    for name, size in sizes.items():
        if name.removesuffix(".npy") in names and size > memory:
            raise DataError(
                f"the array {name} of {path} takes {size / 2**30:,.0f} GiB, more than this machine's memory"
                f" ({memory / 2**30:,.0f} GiB): save it as an .npy file, which is read image by image"
            )


def _choose(keys: list[str], path: Path, part: str) -> tuple[str, str | None]:
    """The keys of the images and of the labels, in the given part if there is one."""

    def key_of(words: tuple[str, ...], part: str) -> str | None:
        names = [f"{word}_{part}" for word in words] + [f"{part}_{word}" for word in words] if part else list(words)
        return next((name for name in names if name in keys), None)

    images = key_of(_IMAGES, part) or (part if part in keys else None)
    if images:
        return images, key_of(_LABELS, part)
    parts = sorted({p for key in keys for word in _IMAGES for p in [_part(key, word)] if p})
    where = f"{path}#{part}" if part else str(path)
    advice = (
        f"Name a part: {', '.join(f'{path.name}#{p}' for p in parts)}"
        if parts
        else ("Save the images as uint8 under the key 'images' and the labels, if any, under 'labels'")
    )
    raise DataError(
        f"{where} has no array of images under a known name: its arrays are {', '.join(sorted(keys))}. {advice}"
    )


def _part(key: str, word: str) -> str:
    """The part named by a key such as x_train or train_x, without the word; "" for other keys."""
    if key.startswith(word + "_"):
        return key[len(word) + 1 :]
    return key[: -len(word) - 1] if key.endswith("_" + word) else ""


def _rgb_last(images: "np.ndarray", origin: str) -> "np.ndarray":
    """A view of shape (n, h, w, 1 or 3)."""
    if images.dtype != np.uint8:
        raise DataError(
            f"{origin} holds {images.dtype} values: images must be uint8, 0 to 255. Convert them and save again"
        )
    if images.ndim == 3 and images.size:
        return images[..., None]
    if images.ndim == 4 and images.size:
        if images.shape[3] in (1, 3):
            return images
        if images.shape[1] in (1, 3):
            return images.transpose(0, 2, 3, 1)
    raise DataError(
        f"{origin} has the shape {images.shape}: images must be (n, h, w), (n, h, w, 3) or (n, 3, h, w), n at least 1"
    )


def _classes(labels: "np.ndarray | None", count: int, origin: str) -> tuple[tuple[str, ...], "np.ndarray"]:
    """Class names and labels from an array of integers or strings."""
    if labels is None:
        return (), np.full(count, -1, dtype=np.int32)
    labels = labels.reshape(-1) if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if labels.shape != (count,) or labels.dtype.kind not in "iubUS":
        raise DataError(
            f"{origin}: the labels have shape {labels.shape} and type {labels.dtype}, but there are {count} images. "
            "Give one integer or one word for each image"
        )
    if labels.dtype.kind in "US":
        names, index = np.unique(labels.astype(str), return_inverse=True)
        return tuple(names.tolist()), index.astype(np.int32)
    largest = int(labels.max())
    if largest >= 1_000_000:
        raise DataError(f"{origin}: a label is {largest}. Number the classes from 0")
    labels = labels.astype(np.int64).clip(min=-1)  # as 32 bits, -2**32 would be class 0
    return tuple(str(number) for number in range(largest + 1)), labels.astype(np.int32)
