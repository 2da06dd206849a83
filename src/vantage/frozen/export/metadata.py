"""The metadata of an exported file."""

import json

from vantage.frozen.encoder import FrozenEncoder
from vantage.views.evaluation import EvaluationView, Straight

__all__ = ["colors_of", "input_of", "metadata_of", "preparation"]


def preparation(view: EvaluationView | Straight) -> str:
    """How an image becomes the pixels of a view, before their colors are changed, in words."""
    if isinstance(view, Straight):
        size = f"{view.size} x {view.size} pixels"
        return f"shorter side resized to {view.base.resize} pixels, then both sides to {size} (bilinear, antialiased)"
    resize = f"shorter side resized to {view.resize} pixels (bilinear, antialiased)"
    return f"{resize}, the middle {view.size} x {view.size} cropped"


def colors_of(view: EvaluationView | Straight) -> str:
    """The colors that a network without its view takes, in words."""
    channels = "" if view.channels == (0, 1, 2) else f", of which channels {view.channels} are seen"
    statistics = f"mean {view.statistics.mean}, standard deviation {view.statistics.std}"
    return f"pixels from 0 to 1 in {type(view.space).__name__}{channels}, normalized: {statistics}"


def input_of(view: EvaluationView | Straight) -> str:
    """The input of a graph, in words."""
    return f"images: uint8 (n, 3, {view.size}, {view.size}), RGB; {preparation(view)}"


def metadata_of(encoder: FrozenEncoder, how: str) -> dict[str, str]:
    """What a file holds besides the network: `how` to load it, how images are prepared, and where it comes from."""
    view = encoder.view.base if isinstance(encoder.view, Straight) else encoder.view
    return {
        "format": "pt",
        "how": how,
        "size": str(view.size),
        "resize": str(view.resize),
        "preparation": preparation(encoder.view),
        "mean": json.dumps(view.statistics.mean),
        "std": json.dumps(view.statistics.std),
        "space": repr(encoder.view.space),
        "channels": json.dumps(encoder.view.channels),
        "backbone": repr(encoder.choice),
        "recipe": encoder.name,
        "checkpoint": encoder.checkpoint.name if encoder.checkpoint else "",
        "encoder": encoder.digest(),
    }
