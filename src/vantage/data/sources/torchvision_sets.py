"""Data sets that torchvision knows by name and can download.

Named `torchvision:CIFAR10#train`. torchvision verifies downloads by published checksums. CIFAR is read in its binary
version, because torchvision's own reader loads pickles, which could run code.

n: images   h, w: height and width in pixels
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import UInt8
from PIL import Image
from torch import Tensor

from vantage.data.decode import to_rgb
from vantage.data.sources.arrays import Arrays
from vantage.data.sources.source import Source, read_some
from vantage.errors import DataError, UnreadableImage
from vantage.storage.cache import hash_of


def _class_of(name: str) -> Any:
    from torchvision import datasets  # only now: torchvision imports a compiler

    return getattr(datasets, name)


def _by_flag(name: str) -> dict[str, Callable[[Path], Any]]:
    return {
        "train": lambda root: _class_of(name)(root, train=True, download=True),
        "test": lambda root: _class_of(name)(root, train=False, download=True),
    }


def _by_split(name: str, *splits: str) -> dict[str, Callable[[Path], Any]]:
    return {split: lambda root, split=split: _class_of(name)(root, split=split, download=True) for split in splits}


def _with_both(name: str) -> dict[str, Callable[[Path], Any]]:
    """Training and validation images separately, and joined as `trainval`, which torchvision has for some sets only."""
    splits = _by_split(name, "train", "val", "test")
    return splits | {"trainval": lambda root: _TwoSplits(splits["train"](root), splits["val"](root))}


class _TwoSplits:
    """Two splits of one set, one after the other."""

    def __init__(self, first: Any, second: Any) -> None:
        self._parts = torch.utils.data.ConcatDataset([first, second])
        self._labels = [*first._labels, *second._labels]
        self.classes = getattr(first, "classes", None)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: int) -> Any:
        return self._parts[number]


_SETS: dict[str, dict[str, Callable[[Path], Any]]] = {
    "MNIST": _by_flag("MNIST"),
    "FashionMNIST": _by_flag("FashionMNIST"),
    "KMNIST": _by_flag("KMNIST"),
    "QMNIST": _by_flag("QMNIST"),
    "STL10": _by_split("STL10", "train", "test", "unlabeled", "train+unlabeled"),
    "SVHN": _by_split("SVHN", "train", "test", "extra"),
    "Flowers102": _with_both("Flowers102"),
    "DTD": _with_both("DTD"),
    "Food101": _by_split("Food101", "train", "test"),
    "GTSRB": _by_split("GTSRB", "train", "test"),
    "FGVCAircraft": _by_split("FGVCAircraft", "train", "val", "trainval", "test"),
    "OxfordIIITPet": _by_split("OxfordIIITPet", "trainval", "test"),
    "Imagenette": _by_split("Imagenette", "train", "val"),
    "EuroSAT": {"all": lambda root: _class_of("EuroSAT")(root, download=True)},
    "Caltech101": {"all": lambda root: _class_of("Caltech101")(root, download=True)},
}
_CIFAR_ADDRESS = "https://www.cs.toronto.edu/~kriz/"
# archive, its MD5, folder in it, files of each part, label bytes before each image, file of class names
_CIFAR = {
    "CIFAR10": (
        "cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530", "cifar-10-batches-bin",
        {"train": tuple(f"data_batch_{i}.bin" for i in range(1, 6)), "test": ("test_batch.bin",)},
        1, "batches.meta.txt",
    ),
    "CIFAR100": (
        "cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8", "cifar-100-binary",
        {"train": ("train.bin",), "test": ("test.bin",)}, 2, "fine_label_names.txt",
    ),
}  # fmt: skip


def open_torchvision(name: str, part: str, root: Path) -> Source:
    """A set by its torchvision name, downloaded below `root` if it is missing. If `part` is "", its first part."""
    parts = _SETS[name] if name in _SETS else _CIFAR[name][3] if name in _CIFAR else None
    if parts is None:
        names = ", ".join(sorted((*_SETS, *_CIFAR)))
        raise DataError(f"torchvision:{name} is not a known set: choose one of {names}, or name a folder of images")
    part = part or next(iter(parts))
    if part not in parts:
        raise DataError(f"torchvision:{name}#{part}: its parts are {', '.join(parts)}. Write one of them after #")
    try:
        root.mkdir(parents=True, exist_ok=True)
        if name in _CIFAR:
            return _cifar(name, part, root)
        return TorchvisionSet(_SETS[name][part](root), f"{name}#{part}")
    except (OSError, RuntimeError, ImportError) as error:
        raise DataError(
            f"cannot get torchvision:{name} below {root}: {error}. Check the network and the folder, or "
            "download the images by hand and name their folder"
        ) from error


class TorchvisionSet:
    """A map-style torchvision set of (picture, label) pairs."""

    def __init__(self, dataset: Any, title: str) -> None:
        self.dataset = dataset
        self.title = title
        labels = next(
            (getattr(dataset, key) for key in ("targets", "labels", "_labels", "y") if hasattr(dataset, key)), None
        )
        if labels is None:
            labels = [dataset[number][1] for number in range(len(dataset))]
        self._labels = np.asarray(labels, dtype=np.int64).reshape(-1)
        names = getattr(dataset, "classes", None) or getattr(dataset, "categories", None)
        largest = int(self._labels.max(initial=-1))
        self.classes = tuple(map(_title_of, names)) if names else tuple(str(number) for number in range(largest + 1))

    def __len__(self) -> int:
        return len(self.dataset)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        try:
            picture = self.dataset[number][0]
        except (OSError, ValueError, SyntaxError) as error:
            raise UnreadableImage(self.name(number), str(error)) from error
        return to_rgb(
            picture if isinstance(picture, Image.Image) else Image.fromarray(np.asarray(picture)), self.name(number)
        )

    def label(self, number: int) -> int | None:
        """The index of the image's class, or None."""
        return None if self._labels[number] < 0 else int(self._labels[number])

    def name(self, number: int) -> str:
        """The image's row in the set."""
        return f"row {number}"

    def fingerprint(self) -> str:
        """A hash of the set's name, all labels, and the pixels of at most 32 images evenly spaced."""
        facts = [self.title.encode(), self._labels.tobytes()]
        return hash_of([*facts, *read_some(len(self), lambda number: self.image(number).numpy().tobytes())])


def read_cifar(files: tuple[Path, ...], label_bytes: int, names: tuple[str, ...]) -> Arrays:
    """CIFAR's binary layout: for each image its label bytes (the finest last), then 3 x 32 x 32 bytes of color."""
    width = label_bytes + 3072
    tables = []
    for path in files:
        data = np.fromfile(path, dtype=np.uint8)
        if data.size == 0 or data.size % width:
            raise DataError(
                f"{path} has {data.size} bytes, which is not a multiple of {width}: delete it to download it again"
            )
        tables.append(data.reshape(-1, width))
    rows = np.concatenate(tables)
    largest = int(rows[:, label_bytes - 1].max())
    if largest >= len(names):
        raise DataError(
            f"{files[0]} has the label {largest}, but there are {len(names)} classes: delete it to download it again"
        )
    arrays = Arrays(rows[:, label_bytes:].reshape(-1, 3, 32, 32), rows[:, label_bytes - 1], str(files[0].parent))
    arrays.classes = names
    return arrays


def _cifar(name: str, part: str, root: Path) -> Arrays:
    archive, md5, folder, parts, label_bytes, names = _CIFAR[name]
    files = tuple(root / folder / file for file in parts[part])
    if not all(file.exists() for file in (*files, root / folder / names)):
        from torchvision.datasets.utils import download_and_extract_archive

        download_and_extract_archive(_CIFAR_ADDRESS + archive, str(root), md5=md5)
    classes = tuple((root / folder / names).read_text().split())
    return read_cifar(files, label_bytes, classes)


def _title_of(name: Any) -> str:
    """The name of a class; some sets have several names for each, in a tuple."""
    return name if isinstance(name, str) else ", ".join(map(str, name))
