"""Take the backbone elsewhere: a file, and the few lines of Python that load it there.

For Python's libraries the file is safetensors, which executes nothing when it is loaded. Its metadata hold the lines,
the view's size, the statistics of the pixels, and the file's origin. Classifiers are left out, since none was trained:
the lines put an identity in their place, so that the parameters load with `strict=True` and the outputs are the
features. For Detectron2, which does not read safetensors, a folder is written (`detectron2/`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from safetensors.torch import save

from vantage.encoders.backbones import Backbone
from vantage.encoders.roles import PerView
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder, load
from vantage.frozen.export.detectron2.folder import write_folder
from vantage.frozen.export.to_timm import timm_script
from vantage.frozen.export.to_torchvision import torchvision_script
from vantage.frozen.export.to_vantage import vantage_script
from vantage.storage.files import write_result

__all__ = ["Exported", "Format", "export", "export_backbone"]

Format = Literal["torchvision", "timm", "safetensors", "detectron2"]
"""Where a backbone goes; safetensors: to Vantage's own loading."""

_SCRIPTS: dict[str, Callable[[Backbone | None, str], str]] = {
    "torchvision": torchvision_script,
    "timm": timm_script,
    "safetensors": vantage_script,
}
"""For each format the lines of Python that build a network and load a file into it."""


@dataclass(frozen=True)
class Exported:
    """An exported file, and how to use it."""

    file: Path
    """The parameters and buffers of the backbone."""

    how: str
    """Python that builds the model as `model` and loads the file from where it was written. The file's metadata hold
    the same lines, under "how", for a file in the current folder. For Detectron2: the command that trains a
    detector."""


def export(run_folder: Path, to: Format, file: Path, network: int | None = None) -> Exported:
    """Write the backbone of a run's newest checkpoint for torchvision, timm or Vantage; for Detectron2 a new folder
    `file` with settings of detectors.

    For a run with a network per view, `network` is the number of one. Raises `UserError` where the library has no such
    network, the file does not end with .safetensors, the file or folder exists already, the disk is full, or the
    checkpoint is damaged.
    """
    encoder = load(run_folder, network)
    if network is None and isinstance(encoder.run.encoders, PerView) and len(encoder.run.encoders.encoders) > 1:
        raise UserError("this run trained a network for each view: choose the one to export (--network 0)")
    return export_backbone(encoder, to, file)


def export_backbone(encoder: FrozenEncoder, to: Format, file: Path) -> Exported:
    """Write an encoder that is already loaded; see `export`."""
    if to == "detectron2":
        weights = write_folder(encoder, file)
        how = f"cd {file.as_posix()}\npython train_net.py --config-file coco-mask-rcnn-fpn-1x.yaml --num-gpus 8\n"
        return Exported(weights, how)
    if file.suffix != ".safetensors":
        raise UserError(f"exports are safetensors files: end the name {file.name} with .safetensors")
    if file.exists():
        raise UserError(f"{file} exists already: remove it, or choose another name with --out")
    script = _SCRIPTS[to]
    how = script(encoder.choice, file.as_posix())
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.backbone.state_dict().items()}
    movable = script(encoder.choice, file.name)  # the file may be moved
    write_result(file, save(tensors, _metadata(encoder, movable)), "the backbone")
    return Exported(file, how)


def _metadata(encoder: FrozenEncoder, how: str) -> dict[str, str]:
    """What the file says about itself."""
    statistics = encoder.view.statistics
    return {
        "format": "pt",
        "how": how,
        "size": str(encoder.view.size),
        "mean": json.dumps(statistics.mean),
        "std": json.dumps(statistics.std),
        "space": repr(encoder.view.space),
        "channels": json.dumps(encoder.view.channels),
        "backbone": repr(encoder.choice),
        "recipe": encoder.name,
        "checkpoint": encoder.checkpoint.name if encoder.checkpoint else "",
        "encoder": encoder.digest(),
    }
