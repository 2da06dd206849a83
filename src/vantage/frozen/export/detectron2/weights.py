"""Parameters of a residual network under the names that Detectron2's `ResNet` gives them.

Both libraries build the same network: a 7x7 stem with a max-pool, blocks with the stride in the 3x3 convolution
(`STRIDE_IN_1X1: False` there), a projection where the channels change. Only names differ: `layer1` is `res2`, each
BatchNorm belongs to the convolution before it (`conv1.norm`), `downsample` is `shortcut`. `num_batches_tracked` is left
out, since Detectron2's frozen BatchNorm has none and its other norms do not read it.
"""

import re
from collections.abc import Mapping

from torch import Tensor

from vantage.encoders.backbones.resnet import Backbone, ResNet
from vantage.errors import UserError

__all__ = ["check_network", "name_there", "weights_there"]

_BLOCK = re.compile(r"layer([1-4])\.(\d+)\.(?:(conv|bn)([1-3])|downsample\.([01]))\.(\w+)")
_STEM = {"conv1": "stem.conv1", "bn1": "stem.conv1.norm"}


def check_network(choice: Backbone | None) -> ResNet:
    """The choice, if Detectron2 can build it; else raises `UserError`, which says why not."""
    if not isinstance(choice, ResNet):
        raise UserError(
            f"Detectron2 has residual networks, but this run trained {choice!r}: export it to onnx or torch"
        )
    if choice.small:
        raise UserError(
            "Detectron2's stem is a 7x7 convolution of stride 2 with a max-pool, but this run trained one for small"
            " images (a 3x3 convolution without max-pool): to use the backbone there, train at more than 96 pixels, or"
            " with --set encoders.encoder.backbone.small=False"
        )
    if choice.depth < 50 and choice.width_multiplier != 1:
        raise UserError(
            f"Detectron2 builds networks of depth {choice.depth} from 64 channels on, but this one has"
            f" {choice.width_multiplier:g} times as many in every layer: export it to safetensors or onnx"
        )
    if choice.in_channels != 3:
        raise UserError(
            f"Detectron2 reads images as RGB, but this network sees {choice.in_channels} channels: export a network"
            " that sees all three (another --network, or another run)"
        )
    return choice


def name_there(name: str) -> str | None:
    """Detectron2's name for torchvision's name of a parameter or buffer; None if Detectron2 has no such tensor.

    Raises `UserError` for a name that no residual network has.
    """
    if name.endswith("num_batches_tracked"):
        return None
    part, _, last = name.rpartition(".")
    if part in _STEM:
        return f"{_STEM[part]}.{last}"
    match = _BLOCK.fullmatch(name)
    if not match:
        raise UserError(f"{name} is not a parameter of a residual network, so Detectron2 has no name for it")
    stage, block, kind, number, shortcut, last = match.groups()
    inside = f"shortcut{'.norm' if shortcut == '1' else ''}" if shortcut else f"conv{number}"
    norm = ".norm" if kind == "bn" else ""
    return f"res{int(stage) + 1}.{block}.{inside}{norm}.{last}"


def weights_there(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of a residual network under Detectron2's names, on the CPU."""
    pairs = ((name_there(name), tensor) for name, tensor in tensors.items())
    return {name: tensor.detach().cpu().contiguous() for name, tensor in pairs if name is not None}
