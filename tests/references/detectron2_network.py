"""What Detectron2's residual networks hold and compute, written from its description, for the settings of a file.

Each convolution has its norm inside; a block's first layer that changes the channels makes a projection; strides are
in the 3x3 convolution unless STRIDE_IN_1X1; the C4 head is always three bottleneck blocks.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

BLOCKS = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3], 152: [3, 8, 36, 3]}


class FrozenNorm(nn.Module):
    """Buffers only, no counter of batches."""

    weight: Tensor
    bias: Tensor
    running_mean: Tensor
    running_var: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        for name, value in (("weight", 1.0), ("bias", 0.0), ("running_mean", 0.0), ("running_var", 1.0)):
            self.register_buffer(name, torch.full((channels,), value))

    def forward(self, x: Tensor) -> Tensor:
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, eps=1e-5)


class Conv(nn.Conv2d):
    def __init__(self, before: int, after: int, size: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__(before, after, size, stride, size // 2, groups=groups, bias=False)
        self.norm = FrozenNorm(after)

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002
        return self.norm(super().forward(input))


class Basic(nn.Module):
    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.shortcut = Conv(before, after, 1, stride) if before != after else None
        self.conv1, self.conv2 = Conv(before, after, 3, stride), Conv(after, after, 3)

    def forward(self, x: Tensor) -> Tensor:
        inside = self.conv2(self.conv1(x).relu())
        return (inside + (x if self.shortcut is None else self.shortcut(x))).relu()


class Bottleneck(nn.Module):
    def __init__(self, before: int, after: int, middle: int, stride: int, groups: int, in_1x1: bool) -> None:
        super().__init__()
        self.shortcut = Conv(before, after, 1, stride) if before != after else None
        self.conv1 = Conv(before, middle, 1, stride if in_1x1 else 1)
        self.conv2 = Conv(middle, middle, 3, 1 if in_1x1 else stride, groups)
        self.conv3 = Conv(middle, after, 1)

    def forward(self, x: Tensor) -> Tensor:
        inside = self.conv3(self.conv2(self.conv1(x).relu()).relu())
        return (inside + (x if self.shortcut is None else self.shortcut(x))).relu()


class Stem(nn.Module):
    def __init__(self, after: int) -> None:
        super().__init__()
        self.conv1 = Conv(3, after, 7, 2)

    def forward(self, images: Tensor) -> Tensor:
        return F.max_pool2d(self.conv1(images).relu(), 3, 2, 1)


class Network(nn.Module):
    """The backbone of a configuration: stem and stages up to the last that is asked for."""

    stem: "Stem"

    def __init__(self, resnets: dict[str, Any], stages: int) -> None:
        super().__init__()
        self.stem = Stem(resnets["STEM_OUT_CHANNELS"])
        before, after = resnets["STEM_OUT_CHANNELS"], resnets["RES2_OUT_CHANNELS"]
        for position in range(stages):
            blocks = BLOCKS[resnets["DEPTH"]][position]
            stage = _stage(
                resnets, blocks, before, after, 2**position, 1 if position == 0 else 2, resnets["DEPTH"] < 50
            )
            self.add_module(f"res{position + 2}", stage)
            before, after = after, 2 * after

    def forward(self, images: Tensor) -> Tensor:
        x = images
        for part in self.children():
            x = part(x)
        return x


def _stage(
    resnets: dict[str, Any], blocks: int, before: int, after: int, factor: int, stride: int, basic: bool
) -> nn.Sequential:
    layers: list[nn.Module] = []
    for number in range(blocks):
        first_stride = stride if number == 0 else 1
        if basic:
            layers.append(Basic(before, after, first_stride))
        else:
            middle = resnets["NUM_GROUPS"] * resnets["WIDTH_PER_GROUP"] * factor
            layers.append(
                Bottleneck(before, after, middle, first_stride, resnets["NUM_GROUPS"], resnets["STRIDE_IN_1X1"])
            )
        before = after
    return nn.Sequential(*layers)


class Detector(nn.Module):
    """The parts of a detector that a backbone's weights may fill, under their full names."""

    def __init__(self, model: dict[str, Any]) -> None:
        super().__init__()
        resnets = model["RESNETS"]
        stages = int(resnets["OUT_FEATURES"][-1].removeprefix("res")) - 1
        network = Network(resnets, stages)
        self.roi_heads = nn.Module()
        if model["BACKBONE"]["NAME"] == "build_resnet_fpn_backbone":
            self.backbone = nn.Module()
            self.backbone.bottom_up = network
        else:
            self.backbone = network
            after = 8 * resnets["RES2_OUT_CHANNELS"]
            self.roi_heads.res5 = _stage(resnets, 3, after // 2, after, 8, 2, basic=False)


def match_names(model: nn.Module, tensors: dict[str, Tensor]) -> tuple[dict[str, str], list[str]]:
    """The checkpointer's heuristic: a name in the model takes the longest saved name that ends it; what has another
    shape is left out. Returns the names taken, and the saved names that found no place."""
    name_of: dict[str, str] = {}
    for name, tensor in model.state_dict().items():
        parts = name.split(".")
        ends = [".".join(parts[first:]) for first in range(len(parts))]  # the longest first
        ending = next((end for end in ends if end in tensors), None)
        if ending is not None and tensors[ending].shape == tensor.shape:
            name_of[name] = ending
    assert len(set(name_of.values())) == len(name_of), "one saved tensor fits two places"
    return name_of, sorted(set(tensors) - set(name_of.values()))
