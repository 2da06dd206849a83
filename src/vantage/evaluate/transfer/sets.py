"""Labeled sets that a run is evaluated on together, and where they are.

Ring (arXiv 2010.02037, table 3) takes nine of Meta-Dataset (arXiv 1903.03096).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vantage.views.colors.statistics import Statistics

__all__ = ["META_DATASET", "TransferSet", "available_sets"]


@dataclass(frozen=True)
class TransferSet:
    """One labeled set of a table."""

    name: str
    """Its name in the table."""

    train: str
    """Path of the training images, as `vantage.data.open_source` takes it."""

    test: str = ""
    """Path of the test images. If omitted, a fifth of each class of the training images is held out."""

    statistics: Statistics | None = None
    """Mean and standard deviation that its images are normalized by. If omitted, measured on its training images."""


META_DATASET = (
    TransferSet("Aircraft", "torchvision:FGVCAircraft#trainval", "torchvision:FGVCAircraft#test"),
    TransferSet("CUB", ""),
    TransferSet("DTD", "torchvision:DTD#trainval", "torchvision:DTD#test"),
    TransferSet("Fungi", ""),
    TransferSet("MNIST", "torchvision:MNIST#train", "torchvision:MNIST#test"),
    TransferSet("FashionMNIST", "torchvision:FashionMNIST#train", "torchvision:FashionMNIST#test"),
    TransferSet("GTSRB", "torchvision:GTSRB#train", "torchvision:GTSRB#test"),
    TransferSet("Flowers", "torchvision:Flowers102#trainval", "torchvision:Flowers102#test"),
    TransferSet("COCO", ""),
    TransferSet("Places205", ""),
)
"""The sets of Ring's table 3 and Places205 (InterCLR). Those without a path are not in torchvision and are searched for
in a folder. For sets with separate validation images (Aircraft, DTD, Flowers) training includes them, as is usual; the
paper does not say."""


def available_sets(
    suite: Sequence[TransferSet], root: Path | None, download: bool
) -> tuple[list[TransferSet], list[str]]:
    """The sets of a suite that are available, with their paths, and a line for each that is not.

    A set is taken from the folder `root`/NAME: its parts `train` and `test` (or `val`), or all of it; COCO from
    `root`/COCO/annotations/instances_*.json. Otherwise it comes from torchvision, if `download` is true.
    """
    available, missing = [], []
    for one in suite:
        folder = root / one.name if root is not None else None
        if folder is not None and folder.is_dir():
            available.append(replace(one, **_paths(folder)))
        elif one.train and download:
            available.append(one)
        else:
            how = " or allow its download (--download)" if one.train else ""
            missing.append(f"{one.name}: no folder {folder or one.name}; put it there (--root){how}")
    return available, missing


def _paths(folder: Path) -> dict[str, str]:
    """Paths of a set's parts in its folder."""
    files = sorted((folder / "annotations").glob("instances_*.json"))
    if files:
        train = next((file for file in files if "train" in file.name), files[0])
        test = next((file for file in files if "val" in file.name and file != train), None)
        return {"train": f"crops:{train}", "test": f"crops:{test}" if test else ""}
    parts = {name: folder / name for name in ("train", "test", "val") if (folder / name).is_dir()}
    if "train" in parts and len(parts) > 1:
        return {"train": str(parts["train"]), "test": str(parts.get("test", parts.get("val")))}
    return {"train": str(folder), "test": ""}
