"""The encoder for PyTorch alone: a program of `torch.export`, which needs neither Vantage nor the network's code."""

import io
import json

import torch

from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.export.graph import Check, GraphImages, check, program_of
from vantage.frozen.export.metadata import input_of, metadata_of

__all__ = ["torch_file", "torch_script"]


def torch_script(encoder: FrozenEncoder, file: str) -> str:
    """The lines that load a file."""
    return (
        f"import torch\n\nmodel = torch.export.load({file!r}).module()\n"
        f"# {input_of(encoder.view)}\n"
        "# features = model(images)\n"
    )


def torch_file(encoder: FrozenEncoder, crops: GraphImages, name: str) -> tuple[bytes, Check]:
    """A file for `torch.export.load`, checked after loading it again. It also holds `vantage.json`, with the facts
    that other exports have as metadata; `name` is its name. Raises `UserError` as `program_of` and `check` do."""
    program, buffer = program_of(encoder, crops), io.BytesIO()
    metadata = json.dumps(metadata_of(encoder, torch_script(encoder, name)), indent=1)
    torch.export.save(program, buffer, extra_files={"vantage.json": metadata})
    content = buffer.getvalue()
    model = torch.export.load(io.BytesIO(content)).module()
    with torch.no_grad():
        return content, check(encoder, crops, model)
