"""Take the backbone elsewhere: a file, and the few lines of Python that load it there.

For Python libraries the file is in safetensors, which executes nothing when it is loaded. Its metadata hold these
lines, the view's size, the statistics of the pixels, and the file's origin. Classifiers are left out, since none was
trained: the lines put an identity in their place, so that the parameters load with `strict=True` and the outputs are
the features. For Detectron2, which does not read safetensors, a folder is written (`detectron2/`).

Files for ONNX and `torch.export` hold the network itself, with what the view does to colors. Such a file is run before
it is written, and refused if its features differ from the encoder's.

Beside every export lies a model card in Markdown (`card`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from safetensors.torch import save

from vantage.composition.suggest import did_you_mean
from vantage.data import Source
from vantage.encoders.backbones.resnet import Backbone
from vantage.encoders.roles import PerView
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder, load
from vantage.frozen.export.card import card_of
from vantage.frozen.export.detectron2.folder import CARD, write_folder
from vantage.frozen.export.graph import Check, check_crops
from vantage.frozen.export.metadata import colors_of, metadata_of, preparation
from vantage.frozen.export.to_onnx import onnx_file, onnx_script
from vantage.frozen.export.to_timm import timm_script
from vantage.frozen.export.to_torch import torch_file, torch_script
from vantage.frozen.export.to_torchvision import torchvision_script
from vantage.frozen.export.to_vantage import vantage_script
from vantage.machine.usual_torch import usual_torch
from vantage.storage.files import remove_on_failure, write_result

__all__ = ["ENDINGS", "Export", "Format", "export", "export_backbone"]

Format = Literal["torchvision", "timm", "safetensors", "detectron2", "onnx", "torch"]
"""What a backbone is written for; safetensors: Vantage's own loading; torch: a program of `torch.export`."""

ENDINGS: dict[Format, str] = {
    "torchvision": ".safetensors",
    "timm": ".safetensors",
    "safetensors": ".safetensors",
    "detectron2": "",
    "onnx": ".onnx",
    "torch": ".pt2",
}
"""The ending of a file's name in each format."""

_SCRIPTS: dict[str, Callable[[Backbone | None, str], str]] = {
    "torchvision": torchvision_script,
    "timm": timm_script,
    "safetensors": vantage_script,
}
"""For each format the lines of Python that build a network and load a file into it."""

_GRAPHS = {"onnx": (onnx_file, onnx_script), "torch": (torch_file, torch_script)}
"""For each format that holds the network: what makes the file and checks it, and the lines of Python that load it."""


@dataclass(frozen=True)
class Export:
    """An exported file, and how to use it."""

    file: Path
    """The parameters and buffers of the backbone, or the whole network."""

    how: str
    """Python that builds the model as `model` and loads the file from where it was written. The file's metadata hold
    the same lines, under "how", for a file in the current folder. For Detectron2: the command that trains a
    detector."""

    card: Path
    """The model card: the file's name with .md after it; for Detectron2 README.md in the folder."""

    check: Check | None = None
    """How well its features agree with the encoder's, if the file holds the network."""


def export(
    run_folder: Path | str, to: Format, file: Path | str, network: int | None = None, source: Source | None = None
) -> Export:
    """Write the backbone of a run's newest checkpoint for torchvision, timm, Vantage, ONNX or PyTorch alone; for
    Detectron2 a new folder `file` with settings of detectors.

    If the run has a network per view, `network` is the number of the one to write; ONNX and PyTorch can also take all
    of them together, their features joined. What is written for these two is checked on eight images of `source`; if
    omitted, on eight that the run was trained on, or on random ones if those are gone.

    Raises `UserError` if the library has no such network, a network cannot be written as a graph or gives other
    features there, the file does not have its ending (`ENDINGS`), the file or folder exists already, the disk is full,
    or the checkpoint is damaged.
    """
    _check_format(to)
    encoder = load(run_folder, network)
    several = isinstance(encoder.run.encoders, PerView) and len(encoder.run.encoders.encoders) > 1
    if network is None and several and to not in _GRAPHS:
        raise UserError("this run trained a network for each view: choose the one to export (--network 0)")
    return export_backbone(encoder, to, file, source)


@usual_torch()
def export_backbone(encoder: FrozenEncoder, to: Format, file: Path | str, source: Source | None = None) -> Export:
    """Write an encoder that is already loaded; see `export`."""
    file = Path(file)
    _check_format(to)
    if to == "detectron2":
        return _export_folder(encoder, file)
    if file.suffix != ENDINGS[to]:
        raise UserError(f"an export to {to} is a {ENDINGS[to]} file: end the name {file.name} with {ENDINGS[to]}")
    if file.exists():
        raise UserError(f"{file} exists already: remove it, or choose another name with --out")
    content, how, check = _content(encoder, to, file, source)
    card = file.with_name(file.name + ".md")
    text = card_of(encoder, to, how.replace(file.as_posix(), file.name), check)  # the file may be moved
    with remove_on_failure(card):
        # First the card: if killed between the two, a file without a card would block its name for another try. An
        # older card of this name described an export that is gone.
        write_result(card, text, "the model card")
        write_result(file, content, "the network" if to in _GRAPHS else "the backbone")
    return Export(file, how if to in _GRAPHS else how + _pixels(encoder), card, check)  # the card says it in words


def _check_format(to: str) -> None:
    if to not in get_args(Format):
        raise UserError(f"there is no export to {to!r}{did_you_mean(str(to), get_args(Format))}")


def _content(encoder: FrozenEncoder, to: Format, file: Path, source: Source | None) -> tuple[bytes, str, Check | None]:
    """What the file holds, the lines that load it, and the check of a graph."""
    if to in _GRAPHS:
        make, lines = _GRAPHS[to]
        content, check = make(encoder, check_crops(encoder, source), file.name)
        return content, lines(encoder, file.as_posix()), check
    script = _SCRIPTS[to]
    how = script(encoder.choice, file.as_posix())
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.backbone.state_dict().items()}
    movable = script(encoder.choice, file.name) + _pixels(encoder)  # the file may be moved
    return save(tensors, metadata_of(encoder, movable)), how, None


def _pixels(encoder: FrozenEncoder) -> str:
    """A comment about the input of a network without its view."""
    return f"# images: RGB, {preparation(encoder.view)}; then {colors_of(encoder.view)}\n"


def _export_folder(encoder: FrozenEncoder, folder: Path) -> Export:
    """Write the folder for Detectron2."""
    how = f"cd {folder.as_posix()}\npython train_net.py --config-file coco-mask-rcnn-fpn-1x.yaml --num-gpus 8\n"
    weights = write_folder(encoder, folder, card_of(encoder, "detectron2", how))
    return Export(weights, how, folder / CARD)
