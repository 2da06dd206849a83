"""The folder that an export to Detectron2 makes: weights, a YAML file for each detector, and a script that trains.

The weights are tensors in torch's own zip format, which Detectron2's checkpointer reads by `torch.load`; they hold
nothing but tensors, so `weights_only=True` reads them too. Writing them needs pickle's format, reading it is
nothing that Vantage does.
"""

import io
import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.export.detectron2.settings import detectors
from vantage.frozen.export.detectron2.weights import check_network, weights_there
from vantage.storage.files import write_result
from vantage.views.colors.spaces import RGB

__all__ = ["write_folder", "yaml_lines"]

_WEIGHTS, _TO_RES4, _SCRIPT = "weights.pth", "weights-to-res4.pth", "train_net.py"


def write_folder(encoder: FrozenEncoder, folder: Path) -> Path:
    """Write a backbone and the settings of detectors to a new or empty folder; returns the file with the weights.

    `weights.pth` has the whole network. Detectron2's C4 detectors take the last stage as their head, which there is
    always of three bottleneck blocks; a network of depth 18 or 34 has others, whose tensors would fit in part and be
    mixed with fresh ones without a word. So such a network has `weights-to-res4.pth` as well, which its C4 settings
    name.

    Raises `UserError` where Detectron2 has no such network, where the network does not see RGB, where the folder holds
    files already or cannot be written.
    """
    choice = check_network(encoder.choice)
    if not isinstance(encoder.view.space, RGB) or encoder.view.channels != (0, 1, 2):
        raise UserError(
            f"Detectron2 reads images as RGB, but this network sees the channels {list(encoder.view.channels)} of"
            f" {encoder.view.space!r}: export a run that was trained on RGB images"
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} exists already: remove it, or choose another folder with --out")
    tensors = weights_there(encoder.backbone.state_dict())
    whole = choice.depth >= 50
    _save(folder / _WEIGHTS, tensors)
    if not whole:
        _save(folder / _TO_RES4, {name: value for name, value in tensors.items() if not name.startswith("res5.")})
    wanted = detectors(choice, encoder.view.statistics, _WEIGHTS, _WEIGHTS if whole else _TO_RES4)
    for name, settings in wanted.items():
        write_result(folder / f"{name}.yaml", "\n".join(yaml_lines(settings)) + "\n", "the export")
    # Kept as text: as a module of this package it could not be imported without Detectron2.
    script = resources.files("vantage.frozen.export.detectron2").joinpath("train_net.txt").read_text(encoding="utf-8")
    write_result(folder / _SCRIPT, script, "the export")
    return folder / _WEIGHTS


def yaml_lines(settings: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Nested settings as YAML, a line for each plain value or list."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from yaml_lines(value, indent + "  ")
        else:
            yield f"{indent}{name}: {json.dumps(value)}"  # JSON's values are YAML's


def _save(file: Path, tensors: Mapping[str, Tensor]) -> None:
    # matching_heuristics: tensors find their places by the ends of names, in pyramids and in C4 heads alike.
    content = {"model": dict(tensors), "__author__": "Vantage", "matching_heuristics": True}
    whole = io.BytesIO()  # torch tells of a full disk in words of its own
    torch.save(content, whole)
    write_result(file, whole.getvalue(), "the export")
