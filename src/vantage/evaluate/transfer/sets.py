"""Labeled sets that a run is judged on together, and where they are.

Ring (arXiv 2010.02037, table 3) takes nine of Meta-Dataset (arXiv 1903.03096).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from vantage.views.colors.statistics import Statistics

__all__ = ["META_DATASET", "TransferSet", "found_sets"]


@dataclass(frozen=True)
class TransferSet:
    """One labeled set of a table."""

    name: str
    """What it is called in the table."""

    train: str
    """Place of the training images, as `vantage.data.open_source` takes it."""

    test: str = ""
    """Place of the test images; without, a fifth of each class of the training images is held out."""

    statistics: Statistics | None = None
    """Mean and standard deviation that its images are normalized by; none measures them on its training images."""


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
"""The sets of Ring's table 3 and Places205 (InterCLR). Those without a place are not in torchvision: they are looked
for in a folder. Sets with validation images of their own (Aircraft, DTD, Flowers) are trained on these too, as is
usual; the paper does not tell."""


def found_sets(suite: Sequence[TransferSet], root: Path | None, download: bool) -> tuple[list[TransferSet], list[str]]:
    """The sets of a suite that are here, with their places, and a line for each that is not.

    A set is taken from the folder `root`/NAME: its parts `train` and `test` (or `val`), or all of it; COCO's as
    `root`/COCO/annotations/instances_*.json. Otherwise, where `download` allows it, from torchvision.
    """
    here, absent = [], []
    for one in suite:
        place = root / one.name if root is not None else None
        if place is not None and place.is_dir():
            here.append(replace(one, **_places(place)))
        elif one.train and download:
            here.append(one)
        else:
            how = " or allow its download (--download)" if one.train else ""
            absent.append(f"{one.name}: no folder {place or one.name}; put it there (--root){how}")
    return here, absent


def _places(folder: Path) -> dict[str, str]:
    """Where a set's parts are in its folder."""
    files = sorted((folder / "annotations").glob("instances_*.json"))
    if files:
        train = next((file for file in files if "train" in file.name), files[0])
        test = next((file for file in files if "val" in file.name and file != train), None)
        return {"train": f"crops:{train}", "test": f"crops:{test}" if test else ""}
    parts = {name: folder / name for name in ("train", "test", "val") if (folder / name).is_dir()}
    if "train" in parts and len(parts) > 1:
        return {"train": str(parts["train"]), "test": str(parts.get("test", parts.get("val")))}
    return {"train": str(folder), "test": ""}
