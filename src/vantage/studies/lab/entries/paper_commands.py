"""Commands at the papers' scale: training on ImageNet, and what judges the runs."""

import re
from collections.abc import Iterable

__all__ = ["detectors", "evaluations", "judged", "pretraining"]

_SETS = {
    "IMAGENET": ("IMAGENET#train", "IMAGENET#val"),
    "IMAGENET100": ("IMAGENET100#train", "IMAGENET100#val"),
    "CIFAR10": ("CIFAR10#train", "CIFAR10#test"),
    "CIFAR100": ("CIFAR100#train", "CIFAR100#test"),
    "STL10": ("STL10#train", "STL10#test"),
    "PLACES205": ("PLACES205#train", "PLACES205#val"),
    "VOC07": ("VOC07#trainval", "VOC07#test"),
}
"""Training and test images by the name of a set."""


def pretraining(recipe: str, epochs: int, folder: str = "", backbone: str = "") -> str:
    """Training by a recipe at 224 pixels. `folder` is the name of the run, if it is not the recipe's."""
    network = f" --backbone {backbone}" * bool(backbone)
    out = f"--out runs/{folder or recipe}"
    return f"vantage pretrain {recipe} --data IMAGENET#train --size 224{network} --epochs {epochs} {out}"


def evaluations(protocol: str, runs: Iterable[str], images: str = "IMAGENET") -> tuple[str, ...]:
    """Runs judged by a protocol, which may have options, on a set of images."""
    name, _, options = protocol.partition(" ")
    train, test = _SETS[images]
    return tuple(f"vantage evaluate {name} runs/{run} --data {train} --test {test} {options}".rstrip() for run in runs)


def detectors(runs: Iterable[str]) -> tuple[str, ...]:
    """Runs written for Detectron2, each in a folder with the settings of every detector and schedule."""
    return tuple(f"vantage export runs/{run} --to detectron2 --out detectron2/{run}" for run in runs)


def judged(protocol: str, training: Iterable[str], images: str = "IMAGENET") -> tuple[str, ...]:
    """The lines that train runs, and those that judge each of them by a protocol."""
    lines = tuple(training)
    return (*lines, *evaluations(protocol, re.findall(r"--out runs/(\S+)", "\n".join(lines)), images))
