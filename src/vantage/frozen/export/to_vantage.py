"""Backbones for Vantage's own loading: any network that Vantage builds."""

from vantage import encoders
from vantage.encoders.backbones.resnet import Backbone
from vantage.errors import UserError
from vantage.frozen.export.script import loading_script

__all__ = ["vantage_script"]


def vantage_script(choice: Backbone | None, file: str) -> str:
    """The lines that build a backbone with Vantage and load a file. Raises `UserError` for a user's own network."""
    kind = type(choice)
    if getattr(encoders, kind.__name__, None) is not kind:
        raise UserError(
            f"{choice!r} is not a backbone that Vantage builds: save `encoder.backbone.state_dict()` yourself"
        )
    return loading_script(f"from vantage.encoders import {kind.__name__}", [f"model = {choice!r}.build()"], file)
