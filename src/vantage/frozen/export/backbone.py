"""Take the backbone elsewhere: a safetensors file, and the few lines of Python that load it there.

For Python's libraries a file is safetensors: loading one executes nothing. The file's own metadata carry the lines,
the size and the statistics of the pixels it was trained on, and where it comes from. Classifiers are left out, since
none was trained: the lines put an identity in their place, and then the parameters load with `strict=True` and the
outputs are the features. For Detectron2, which does not read safetensors, a folder is written (`detectron2/`).
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from safetensors.torch import save

from vantage.encoders.backbones import LAYERS, ResNet, Timm
from vantage.encoders.roles import PerView
from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder, load
from vantage.frozen.export.detectron2.folder import write_folder
from vantage.storage.files import write_result

__all__ = ["Exported", "export", "export_backbone"]

Format = Literal["torchvision", "timm", "safetensors", "detectron2"]


@dataclass(frozen=True)
class Exported:
    """A file that was written, and how to use it."""

    file: Path
    """The parameters and buffers of the backbone."""

    how: str
    """Python that builds the model as `model` and loads the file from where it was written. The file's metadata have
    the same lines, under "how", for a file in the current folder. For Detectron2 the command that trains a detector."""


def export(run_folder: Path, to: Format, file: Path, network: int | None = None) -> Exported:
    """Write the backbone of a run's newest checkpoint for torchvision, for timm, or as it is with Vantage's own
    loading; for Detectron2 with the settings of detectors, and then `file` is a new folder.

    Of a run with a network per view, `network` says which. Raises `UserError` where the library has no such network,
    the file does not end with .safetensors, the file or folder exists
    already, the disk is full, or the checkpoint is damaged.
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
        raise UserError(f"{file.name} was asked for, but exports are safetensors files: end the name with .safetensors")
    if file.exists():
        raise UserError(f"{file} exists already: remove it, or choose another name with --out")
    how = _FORMATS[to](encoder, file.as_posix())
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in encoder.backbone.state_dict().items()}
    statistics = encoder.view.statistics
    metadata = {
        "format": "pt",
        "how": _FORMATS[to](encoder, file.name),  # the file may be moved
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
    write_result(file, save(tensors, metadata), "the backbone")
    return Exported(file, how)


def _to_torchvision(encoder: FrozenEncoder, file: str) -> str:
    choice = encoder.choice
    if not isinstance(choice, ResNet):
        raise UserError(f"torchvision has no network for {choice!r}: export it to timm or safetensors")
    name = _plain_name(choice)
    if name:
        build = f"model = torchvision.models.{name}()"
    else:
        block = "BasicBlock" if choice.depth < 50 else "Bottleneck"
        build = (
            f"model = torchvision.models.resnet.ResNet(torchvision.models.resnet.{block}, {list(LAYERS[choice.depth])},"
            f" groups={choice.groups}, width_per_group={choice.width_per_group})"
        )
    return _lines("torchvision", [build, "model.fc = torch.nn.Identity()", *_stem(choice)], file)


def _to_timm(encoder: FrozenEncoder, file: str) -> str:
    match encoder.choice:
        case Timm(name, channels, image_size):
            size = "" if image_size is None else f", img_size={image_size}"
            build = [f"model = timm.create_model({name!r}, num_classes=0, in_chans={channels}{size})"]
        case ResNet() as choice if _plain_name(choice):
            # timm's ResNets keep torchvision's names.
            build = [f"model = timm.create_model({_plain_name(choice)!r}, num_classes=0)", *_stem(choice)]
        case ResNet() as choice:
            block = "BasicBlock" if choice.depth < 50 else "Bottleneck"
            made = (
                f"model = timm.models.resnet.ResNet(timm.models.resnet.{block}, {LAYERS[choice.depth]}, num_classes=0,"
                f" cardinality={choice.groups}, base_width={choice.width_per_group})"
            )
            build = [made, *_stem(choice)]
        case other:
            raise UserError(f"timm has no network for {other!r}: export it to safetensors")
    return _lines("timm", build, file)


def _to_safetensors(encoder: FrozenEncoder, file: str) -> str:
    if not isinstance(encoder.choice, ResNet | Timm):
        raise UserError(
            f"{encoder.choice!r} is no backbone that Vantage builds: save `encoder.backbone.state_dict()` yourself"
        )
    build = [
        f"from vantage.encoders.backbones import {type(encoder.choice).__name__}",
        f"model = {encoder.choice!r}.build()",
    ]
    return _lines("torch", build, file)


_FORMATS: dict[str, Callable[[FrozenEncoder, str], str]] = {
    "torchvision": _to_torchvision,
    "timm": _to_timm,
    "safetensors": _to_safetensors,
}


def _plain_name(choice: ResNet) -> str | None:
    """The name that both libraries have for a ResNet, if it is one of the published."""
    wide = {(50, 1, 64): "resnet50", (50, 32, 4): "resnext50_32x4d", (50, 1, 128): "wide_resnet50_2"}
    wide |= {(101, 1, 64): "resnet101", (101, 32, 8): "resnext101_32x8d", (101, 64, 4): "resnext101_64x4d"}
    wide |= {(101, 1, 128): "wide_resnet101_2"}
    wide |= {(depth, 1, 64): f"resnet{depth}" for depth in (18, 34, 152)}
    return wide.get((choice.depth, choice.groups, choice.width_per_group))


def _stem(choice: ResNet) -> list[str]:
    """The lines that give a plain ResNet the stem it was trained with."""
    if choice.small:
        first = f"{choice.in_channels}, 64, kernel_size=3, stride={choice.stem_stride}, padding=1, bias=False"
        return [f"model.conv1 = torch.nn.Conv2d({first})", "model.maxpool = torch.nn.Identity()"]
    if choice.in_channels != 3:
        first = f"{choice.in_channels}, 64, kernel_size=7, stride=2, padding=3, bias=False"
        return [f"model.conv1 = torch.nn.Conv2d({first})"]
    return []


def _lines(library: str, build: list[str], file: str) -> str:
    imports = ["import torch"] + ([f"import {library}"] if library != "torch" else [])
    load_it = [f"model.load_state_dict(load_file({file!r}), strict=True)", "model.eval()"]
    return "\n".join([*imports, "from safetensors.torch import load_file", "", *build, *load_it]) + "\n"
