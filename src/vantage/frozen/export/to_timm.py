"""Backbones for timm: its own networks, and ResNets, whose parameters have torchvision's names there."""

from vantage.encoders.backbones.resnet import LAYERS, Backbone, ResNet, Timm
from vantage.errors import UserError
from vantage.frozen.export.script import block_name, check_width, formats_for, loading_script, plain_name, stem_lines

__all__ = ["timm_script"]


def timm_script(choice: Backbone | None, file: str) -> str:
    """The lines that build a backbone with timm and load a file. Raises `UserError` if it has no such network."""
    if isinstance(choice, ResNet):
        check_width(choice, "timm")
    match choice:
        case Timm(name, channels, image_size):
            size = "" if image_size is None else f", img_size={image_size}"
            build = [f"model = timm.create_model({name!r}, num_classes=0, in_chans={channels}{size})"]
        case ResNet() if name := plain_name(choice):
            build = [f"model = timm.create_model({name!r}, num_classes=0)", *stem_lines(choice)]
        case ResNet():
            network = (
                f"model = timm.models.resnet.ResNet(timm.models.resnet.{block_name(choice)}, {LAYERS[choice.depth]},"
                f" num_classes=0, cardinality={choice.groups}, base_width={choice.width_per_group})"
            )
            build = [network, *stem_lines(choice)]
        case _:
            raise UserError(f"timm has no network for {choice!r}: export it to {formats_for(choice)}")
    return loading_script("import timm", build, file)
