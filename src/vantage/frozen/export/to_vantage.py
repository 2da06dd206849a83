"""Backbones for Vantage's own loading: any network that Vantage builds."""

from vantage.encoders.backbones import Backbone, ResNet, Timm
from vantage.errors import UserError
from vantage.frozen.export.script import loading_script

__all__ = ["vantage_script"]


def vantage_script(choice: Backbone | None, file: str) -> str:
    """The lines that build a backbone with Vantage and load a file. Raises `UserError` for a user's own network."""
    if not isinstance(choice, ResNet | Timm):
        raise UserError(
            f"{choice!r} is not a backbone that Vantage builds: save `encoder.backbone.state_dict()` yourself"
        )
    kind = type(choice).__name__
    build = [f"from vantage.encoders.backbones import {kind}", f"model = {choice!r}.build()"]
    return loading_script("torch", build, file)
