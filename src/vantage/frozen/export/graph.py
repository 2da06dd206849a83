"""A frozen encoder as one graph from pixels to features, and the check that a written graph gives the same features.

Color space, normalization and choice of channels are in the graph, so its user only has to resize and crop.

n: images   b: images of a batch   d: width of the features   s: side of the view in pixels
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from vantage.data import Source, open_source
from vantage.encoding import encode
from vantage.errors import UnreadableImage, UserError, first_line
from vantage.frozen.encoder import FrozenEncoder
from vantage.storage.files import no_temporary_files
from vantage.views.operations.operation import Operation

__all__ = ["TOLERANCE", "Check", "GraphImages", "check", "check_crops", "program_of"]

TOLERANCE = 1e-4
"""Largest difference between two features that counts as rounding, as a share of the largest feature."""

_IMAGES = 8


@dataclass(frozen=True)
class GraphImages:
    """Images that a graph is checked on."""

    pixels: UInt8[Tensor, "n 3 s s"]
    """The images, resized and cropped."""

    origin: str
    """Where they come from."""


@dataclass(frozen=True)
class Check:
    """How well a written graph agrees with the encoder."""

    crops: GraphImages
    """The images on which both were run."""

    difference: float
    """Largest difference between their features, as a share of the largest feature."""

    def sentence(self) -> str:
        """The agreement in words."""
        share = f"{self.difference:.1g} of the largest one (at most {TOLERANCE:g} is accepted)"
        return f"checked on {len(self.crops.pixels)} {self.crops.origin}: features differ by {share}"


class PixelsToFeatures(nn.Module):
    """What the view does to the colors of pixels, and then the backbone."""

    def __init__(self, operations: tuple[Operation, ...], backbone: nn.Module) -> None:
        super().__init__()
        self.operations, self.backbone = operations, backbone

    def forward(self, images: UInt8[Tensor, "b 3 s s"]) -> Float[Tensor, "b d"]:
        """Features of images that are resized and cropped."""
        values = images.float() * (1 / 255)
        for operation in self.operations:  # the operations of an evaluation view draw no parameters
            values = operation.apply(values, values.new_empty(values.shape[0], 0))
        return self.backbone(values)


def program_of(encoder: FrozenEncoder, crops: GraphImages) -> ExportedProgram:
    """The encoder as a program of torch's core operations, for any number of images at once, traced on two of `crops`.

    Raises `UserError` for a network that `torch.export` cannot follow, and if its temporary files have no room.
    """
    network = PixelsToFeatures(encoder.view.operations, encoder.backbone).eval()
    with torch.no_grad():
        network(crops.pixels[:2])  # so that nothing is made and cached while tracing
        try:
            return torch.export.export(network, (crops.pixels[:2],), dynamic_shapes={"images": {0: Dim("batch")}})
        except OSError as problem:  # torch.export needs temporary files
            raise no_temporary_files(problem) from problem
        except Exception as problem:  # torch.export has many kinds of errors for what it cannot follow
            reason = first_line(problem, 160)
            raise UserError(
                f"{encoder.choice or encoder.name!r} cannot be written as one graph ({reason}): export to safetensors"
            ) from problem


def check(encoder: FrozenEncoder, crops: GraphImages, graph: Callable[[UInt8[Tensor, "n 3 s s"]], Tensor]) -> Check:
    """How well `graph`, a function from pixels to features, agrees with the encoder, on all images at once and on one
    alone. Raises `UserError` if it differs by more than `TOLERANCE`, or gives anything but numbers."""
    expected = encode(encoder.backbone, encoder.view.finish(crops.pixels))
    largest = expected.abs().amax().clamp(min=torch.finfo(expected.dtype).tiny)
    differences = [
        ((graph(crops.pixels[:count]) - expected[:count]).abs().amax() / largest).item()
        for count in (len(crops.pixels), 1)
    ]
    if not all(difference <= TOLERANCE for difference in differences):  # false for NaN too
        raise UserError(
            f"the written graph gives other features than the run: they differ by {max(differences):.2g} of the largest"
            f" one on {crops.origin}, where {TOLERANCE:g} is accepted. Nothing was written: export to safetensors"
        )
    return Check(crops, max(differences))


def check_crops(encoder: FrozenEncoder, source: Source | None = None) -> GraphImages:
    """Up to eight images for `check`, from `source` or, if omitted, from those that the run was trained on; random
    color gradients if fewer than three of them can be read."""
    source = _training_images(encoder) if source is None else source
    crops = [] if source is None else list(_crops_of(encoder, source))
    if len(crops) > 2:  # a graph is traced on two, so it needs more to show that it takes any number
        return GraphImages(torch.stack(crops), "real images")
    coarse = torch.rand(_IMAGES, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    size = (encoder.view.size, encoder.view.size)
    smooth = nn.functional.interpolate(coarse, size, mode="bilinear", align_corners=True)
    return GraphImages((255 * smooth).to(torch.uint8), "random color gradients")


def _crops_of(encoder: FrozenEncoder, source: Source) -> Iterator[UInt8[Tensor, "3 s s"]]:
    for number in torch.linspace(0, len(source) - 1, min(_IMAGES, len(source))).long().tolist():
        try:
            yield encoder.view.crop(source.image(number))
        except UnreadableImage:
            continue


def _training_images(encoder: FrozenEncoder) -> Source | None:
    try:
        return open_source(encoder.run.data.path) if encoder.run.data.path else None
    except UserError:  # they were moved, or are a source of the user's own
        return None
