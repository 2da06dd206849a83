"""Lines of Python that build a network and load a file into it: what several libraries have in common."""

from vantage import encoders
from vantage.encoders.backbone_names import RESIDUAL
from vantage.encoders.backbones.resnet import Backbone, ResNet
from vantage.errors import UserError

__all__ = ["block_name", "check_width", "formats_for", "is_ours", "loading_script", "plain_name", "stem_lines"]


def loading_script(library: str, build: list[str], file: str) -> str:
    """The whole script: `build` makes `model` with a library, which the line `library` imports; then the file is
    loaded."""
    torch = ["import torch"] if any("torch.nn." in line for line in build) else []
    imports = sorted(
        [*torch, library, "from safetensors.torch import load_file"], key=lambda line: (line[0] != "i", line)
    )
    loading = [f"model.load_state_dict(load_file({file!r}), strict=True)", "model.eval()"]
    return "\n".join([*imports, "", *build, *loading]) + "\n"


def check_width(choice: ResNet, library: str) -> None:
    """Raises `UserError` for a network whose layers are all wider or narrower than those that a library builds."""
    if choice.width_multiplier != 1:
        raise UserError(
            f"{library} builds residual networks from 64 channels on, but this one has {choice.width_multiplier:g}"
            " times as many in every layer: export it to safetensors or onnx"
        )


def formats_for(choice: Backbone | None) -> str:
    """What a backbone can be exported to that a library has no network for, in words."""
    return "safetensors, onnx or torch" if is_ours(choice) else "onnx or torch"


def is_ours(choice: Backbone | None) -> bool:
    """Whether Vantage builds a backbone, and no code of a user's own."""
    return getattr(encoders, type(choice).__name__, None) is type(choice)


def plain_name(choice: ResNet) -> str | None:
    """The name that torchvision and timm have for a published ResNet; None for others."""
    published = ResNet(choice.depth, groups=choice.groups, width_per_group=choice.width_per_group)
    return next((name for name, settings in RESIDUAL.items() if ResNet(**settings) == published), None)


def block_name(choice: ResNet) -> str:
    """The name that torchvision and timm have for the blocks of a ResNet."""
    return "BasicBlock" if choice.depth < 50 else "Bottleneck"


def stem_lines(choice: ResNet) -> list[str]:
    """The lines that replace the stem of a published ResNet with the one that was trained."""
    if choice.small:
        first = f"{choice.in_channels}, 64, kernel_size=3, stride={choice.stem_stride}, padding=1, bias=False"
        return [f"model.conv1 = torch.nn.Conv2d({first})", "model.maxpool = torch.nn.Identity()"]
    if choice.in_channels != 3:
        first = f"{choice.in_channels}, 64, kernel_size=7, stride=2, padding=3, bias=False"
        return [f"model.conv1 = torch.nn.Conv2d({first})"]
    return []
