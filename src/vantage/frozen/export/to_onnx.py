"""The encoder for other runtimes: an ONNX file, checked with ONNX Runtime; needs the extra `onnx`."""

from importlib.util import find_spec

import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from vantage.errors import UserError
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.export.graph import Check, GraphImages, check, program_of
from vantage.frozen.export.metadata import input_of, metadata_of

__all__ = ["onnx_file", "onnx_script"]

_MOST_BYTES = 2_000_000_000
"""Bytes of parameters that fit into one file: protobuf's limit is 2 GiB."""


def onnx_script(encoder: FrozenEncoder, file: str) -> str:
    """The lines that load a file."""
    return (
        f"import onnxruntime\n\nmodel = onnxruntime.InferenceSession({file!r})\n"
        f"# {input_of(encoder.view)}\n"
        '# (features,) = model.run(None, {"images": images})\n'
    )


def onnx_file(encoder: FrozenEncoder, crops: GraphImages, name: str) -> tuple[bytes, Check]:
    """An ONNX file with the input `images` and the output `features`, checked with ONNX Runtime; `name` is its name.

    Raises `UserError` if the extra is not installed, if the network is too large for one file or has an operation that
    ONNX lacks, and as `program_of` and `check` do.
    """
    missing = [name for name in ("onnx", "onnxruntime", "onnxscript") if find_spec(name) is None]
    if missing:
        raise UserError(f"this export needs {', '.join(missing)}: pip install 'vantage-ssl[onnx]'")
    size = sum(tensor.nbytes for tensor in encoder.backbone.state_dict().values())
    if size > _MOST_BYTES:
        raise UserError(f"the network has {size / 1e9:.1f} GB, but an ONNX file holds 2 GB: export it to torch")
    import onnxruntime

    content = _onnx_bytes(encoder, crops, name)
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])

    def features(pixels: UInt8[Tensor, "n 3 s s"]) -> Float[Tensor, "n d"]:
        return torch.from_numpy(session.run(None, {"images": pixels.numpy()})[0])

    return content, check(encoder, crops, features)


def _onnx_bytes(encoder: FrozenEncoder, crops: GraphImages, name: str) -> bytes:
    import onnx.helper

    program = program_of(encoder, crops)
    axes = {"images": {0: "batch"}}
    try:
        graph = torch.onnx.export(
            program, input_names=["images"], output_names=["features"], dynamic_shapes=axes, verbose=False
        )
    except torch.onnx.OnnxExporterError as problem:
        raise UserError(
            f"{encoder.choice or encoder.name!r} has an operation that ONNX lacks: export it to torch"
        ) from problem
    assert graph is not None
    model = graph.model_proto
    onnx.helper.set_model_props(model, metadata_of(encoder, onnx_script(encoder, name)))
    return model.SerializeToString()
