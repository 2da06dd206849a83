"""Backbones for Vantage's own loading: any network that Vantage builds."""

from vantage.encoders.backbones.resnet import Backbone
from vantage.errors import UserError
from vantage.frozen.export.script import is_ours, loading_script

__all__ = ["vantage_script"]


def vantage_script(choice: Backbone | None, file: str) -> str:
    """The lines that build a backbone with Vantage and load a file. Raises `UserError` for a user's own network."""
    if not is_ours(choice):
        raise UserError(
            f"{choice!r} is not a backbone that Vantage builds: export it to onnx or torch, or save"
            " vantage.load(RUN).backbone.state_dict() yourself"
        )
    return loading_script(
        f"from vantage.encoders import {type(choice).__name__}", [f"model = {choice!r}.build()"], file
    )
