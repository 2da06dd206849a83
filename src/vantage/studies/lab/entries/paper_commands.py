"""Commands at the papers' scale: training on ImageNet, and what judges the runs."""

import re
from collections.abc import Iterable

__all__ = ["detectors", "evaluations", "frozen_detectors", "judged", "on_set", "pretraining", "ring_training"]

_SETS = {
    "IMAGENET": ("IMAGENET#train", "IMAGENET#val"),
    "IMAGENET100": ("IMAGENET100#train", "IMAGENET100#val"),
    "CIFAR10": ("CIFAR10#train", "CIFAR10#test"),
    "CIFAR100": ("CIFAR100#train", "CIFAR100#test"),
    "STL10": ("STL10#train", "STL10#test"),
    "PLACES205": ("PLACES205#train", "PLACES205#val"),
    "VOC07": ("VOC07#trainval", "VOC07#test"),
    "NYU": ("NYU/train/images#NYU/train/masks", "NYU/test/images#NYU/test/masks"),
}
"""Training and test images by the name of a set."""
_VOC = "--data VOC2007#trainval,VOC2012#trainval --test VOC2007#test"
_STATISTICS = {
    "CIFAR10": " --set mean=0.4914,0.4822,0.4465 --set std=0.247,0.2435,0.2616",
    "CIFAR100": " --set mean=0.5071,0.4865,0.4409 --set std=0.2673,0.2564,0.2762",
    "STL10": " --set mean=0.4409,0.4279,0.3868 --set std=0.2683,0.261,0.2687",
    "IMAGENET": "",
}
"""Mean and standard deviation of all pixels of the sets; ImageNet's are those of the recipes."""


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


def ring_training(recipe: str, images: str = "CIFAR10", run: str = "") -> str:
    """Training in the setting of Ring's tables on one of its four sets, normalized by the statistics of the set (views
    of CMC by those of their color space). `run` is the name of the run, if it is not that of recipe and set."""
    statistics = "" if "_cmc" in recipe else _STATISTICS[images]
    data = "STL10#train+unlabeled" if images == "STL10" else _SETS[images][0]
    out = f"--out runs/{run or on_set(recipe, images)}"
    return f"vantage pretrain {recipe} --data {data} --size 224 {out}{statistics}"


def on_set(recipe: str, images: str) -> str:
    """The name of a run of Ring's tables."""
    return recipe if images == "CIFAR10" else f"{recipe}_{images.lower()}"


def detectors(runs: Iterable[str]) -> tuple[str, ...]:
    """Runs written for Detectron2, each in a folder with the settings of every detector and schedule."""
    return tuple(f"vantage export runs/{run} --to detectron2 --out detectron2/{run}" for run in runs)


def frozen_detectors(runs: Iterable[str]) -> tuple[str, ...]:
    """Detectors on frozen ResNet-18 (Ring's Table 4): boxes and masks of COCO, its keypoints, and boxes of VOC."""
    pyramid = "--set network_on.frozen_stages=5 --set network_on.new_norm=False"
    fourth_stage = "--set frozen_stages=5 --set new_norm=False"
    return tuple(
        f"vantage evaluate {protocol} runs/{run} {images} {frozen}"
        for run in runs
        for protocol, images, frozen in (
            ("instances", _coco("instances"), pyramid),
            ("keypoints", _coco("person_keypoints"), pyramid),
            ("detection-c4", f"--schedule voc {_VOC}", fourth_stage),
        )
    )


def _coco(annotations: str) -> str:
    train, test = (f"COCO/annotations/{annotations}_{part}2017.json" for part in ("train", "val"))
    return f"--data {train} --test {test}"


def judged(protocol: str, training: Iterable[str], images: str = "IMAGENET") -> tuple[str, ...]:
    """The lines that train runs, and those that judge each of them by a protocol."""
    lines = tuple(training)
    return (*lines, *evaluations(protocol, re.findall(r"--out runs/(\S+)", "\n".join(lines)), images))
