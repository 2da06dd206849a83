"""Backbones for torchvision, which has ResNets."""

from vantage.encoders.backbones.resnet import LAYERS, Backbone, ResNet, Timm
from vantage.errors import UserError
from vantage.frozen.export.script import block_name, check_width, formats_for, loading_script, plain_name, stem_lines

__all__ = ["torchvision_script"]


def torchvision_script(choice: Backbone | None, file: str) -> str:
    """The lines that build a backbone with torchvision and load a file. Raises `UserError` if it has no such
    network."""
    if not isinstance(choice, ResNet):
        better = "timm" if isinstance(choice, Timm) else formats_for(choice)
        raise UserError(f"torchvision has no network for {choice!r}: export it to {better}")
    check_width(choice, "torchvision")
    if name := plain_name(choice):
        build = f"model = torchvision.models.{name}()"
    else:
        block, layers = block_name(choice), list(LAYERS[choice.depth])
        build = (
            f"model = torchvision.models.resnet.ResNet(torchvision.models.resnet.{block}, {layers},"
            f" groups={choice.groups}, width_per_group={choice.width_per_group})"
        )
    return loading_script("import torchvision", [build, "model.fc = torch.nn.Identity()", *stem_lines(choice)], file)
