"""The folder of an export to Detectron2: weights, a YAML file for each detector, and a script that trains.

The weights are tensors in torch's own zip format, which Detectron2's checkpointer reads by `torch.load`. They hold
nothing but tensors, so `weights_only=True` reads them too. Vantage writes pickle's format here, but never reads it.
"""

import io
import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.export.detectron2.settings import detectors
from vantage.frozen.export.detectron2.weights import check_network, weights_there
from vantage.storage.files import remove_on_failure, result_file, write_result
from vantage.storage.unfinished import is_unfinished, unfinished_name
from vantage.training.folder.writer import only_writer
from vantage.views.colors.spaces import RGB

__all__ = ["CARD", "write_folder", "yaml_lines"]

CARD = "README.md"
"""Name of the model card."""

_WEIGHTS, _TO_RES4, _SCRIPT = "weights.pth", "weights-to-res4.pth", "train_net.py"


def write_folder(encoder: FrozenEncoder, folder: Path, card: str) -> Path:
    """Write a backbone, the settings of detectors and the text of a model card to a new or empty folder; returns the
    file with the weights.

    `weights.pth` holds the whole network. Detectron2's C4 detectors use the last stage as their head, which always has
    three bottleneck blocks there. The last stage of a network of depth 18 or 34 has other blocks: some of its tensors
    would fit and be mixed silently with random ones. For such a network the C4 settings name `weights-to-res4.pth`, a
    second file without that stage.

    The card appears last, so a folder with an unfinished card is what a killed export left: its files are replaced.

    Raises `UserError` if Detectron2 has no such network, if the network does not see RGB, or if the folder holds files
    already or cannot be written.
    """
    choice = check_network(encoder.choice)
    if not isinstance(encoder.view.space, RGB) or encoder.view.channels != (0, 1, 2):
        raise UserError(
            f"Detectron2 reads images as RGB, but this network sees the channels {list(encoder.view.channels)} of"
            f" {encoder.view.space!r}: export a run that was trained on RGB images"
        )
    whole = choice.depth >= 50
    settings = detectors(choice, encoder.view.statistics, _WEIGHTS, _WEIGHTS if whole else _TO_RES4)
    with only_writer(folder, "exporting to"):
        _remove_unfinished(folder, (_WEIGHTS, _TO_RES4, _SCRIPT, *map(_settings_file, settings), CARD))
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise UserError(f"{folder} exists already: remove it, or choose another folder with --out")
        with remove_on_failure(folder), result_file(folder / CARD, "the model card") as file:
            _write_files(weights_there(encoder.backbone.state_dict()), whole, settings, folder)
            file.write(card.encode())
    return folder / _WEIGHTS


def _remove_unfinished(folder: Path, names: Iterable[str]) -> None:
    """Remove what a killed export left: files with these names beside an unfinished card, which ends them, so that
    this may be killed too."""
    if is_unfinished(folder / CARD):
        for name in names:
            (folder / name).unlink(missing_ok=True)
            (folder / unfinished_name(name)).unlink(missing_ok=True)


def _write_files(
    tensors: Mapping[str, Tensor], whole: bool, settings: Mapping[str, Mapping[str, Any]], folder: Path
) -> None:
    """Write weights, settings and script; unless `whole`, also the weights without the last stage."""
    _save(folder / _WEIGHTS, tensors)
    if not whole:
        _save(folder / _TO_RES4, {name: value for name, value in tensors.items() if not name.startswith("res5.")})
    for name, values in settings.items():
        write_result(folder / _settings_file(name), "\n".join(yaml_lines(values)) + "\n", "the export")
    # A text file, since a module of this package could not be imported without Detectron2.
    script = resources.files("vantage.frozen.export.detectron2").joinpath("train_net.txt").read_text(encoding="utf-8")
    write_result(folder / _SCRIPT, script, "the export")


def _settings_file(name: str) -> str:
    return f"{name}.yaml"


def yaml_lines(settings: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Nested settings as YAML, a line for each plain value or list."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield f"{indent}{name}:"
            yield from yaml_lines(value, indent + "  ")
        else:
            yield f"{indent}{name}: {json.dumps(value)}"  # JSON's values are YAML's


def _save(file: Path, tensors: Mapping[str, Tensor]) -> None:
    # matching_heuristics: tensors are matched by the ends of their names, in pyramids and in C4 heads alike.
    content = {"model": dict(tensors), "__author__": "Vantage", "matching_heuristics": True}
    buffer = io.BytesIO()  # so that a full disk gives our error message, not torch's
    torch.save(content, buffer)
    write_result(file, buffer.getvalue(), "the export")
