"""The networks of Colorful Moving MNIST: a small ConvNet for frames, and an LSTM over its features.

b: clips   t: frames   s: side of a frame in pixels   f: features of a frame   d: width of the vectors compared
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import normalize

from vantage.errors import UserError

__all__ = ["ClipEncoder", "ClipNetwork", "FrameEncoder", "FrameNetwork"]


@dataclass(frozen=True)
class FrameEncoder:
    """ConvNet with one layer for each number of filters and global average pooling (arXiv 2005.10243, appendix B.4).

    3 × 3 kernels with stride 2, and BatchNorm and ReLU after each, are our choice; the paper states only the filters.
    """

    filters: tuple[int, ...] = (8, 16, 32, 64)
    """Filters of each layer; the last number is also the number of features."""

    def __post_init__(self) -> None:
        if not self.filters or min(self.filters) < 1:
            raise UserError(f"FrameEncoder: filters are {self.filters}; give one layer or more, of 1 filter or more")

    @property
    def width(self) -> int:
        """Number of features of a frame."""
        return self.filters[-1]

    def build(self) -> "FrameNetwork":
        """A network with torch's default initialization."""
        return FrameNetwork(self)


class FrameNetwork(nn.Module):
    """Maps frames to features; made by `FrameEncoder`."""

    def __init__(self, choice: FrameEncoder) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(part for ends in pairwise((3, *choice.filters)) for part in _layer(*ends)))

    def forward(self, frames: Float[Tensor, "b 3 s s"]) -> Float[Tensor, "b f"]:
        """One vector for each frame."""
        return self.layers(frames.contiguous(memory_format=torch.channels_last)).mean((2, 3))


@dataclass(frozen=True)
class ClipEncoder:
    """The frame encoder for both views, and a one-layer LSTM over the frames of the first view (appendix B.4).

    One ConvNet encodes the frames of both views, and each view has its own linear layer, whose output is scaled to unit
    length (our choices; the paper speaks of "a" ConvNet and mentions no layer after the LSTM).
    """

    frame: FrameEncoder = FrameEncoder()
    """Encoder of a single frame."""

    memory: int = 64
    """Size of the LSTM's state; its output after the last frame represents the clip."""

    width: int = 64
    """Width of the vectors that are compared."""

    def __post_init__(self) -> None:
        if self.memory < 1 or self.width < 1:
            raise UserError(f"ClipEncoder: memory is {self.memory} and width {self.width}; both must be 1 or more")

    def build(self) -> "ClipNetwork":
        """A network with torch's default initialization."""
        return ClipNetwork(self)


class ClipNetwork(nn.Module):
    """Maps both views to unit vectors; made by `ClipEncoder`. Evaluation uses only `frame`."""

    def __init__(self, choice: ClipEncoder) -> None:
        super().__init__()
        self.frame = choice.frame.build()
        self.recurrent = nn.LSTM(choice.frame.width, choice.memory, batch_first=True)
        self.project_first = nn.Linear(choice.memory, choice.width)
        self.project_second = nn.Linear(choice.frame.width, choice.width)

    def forward(
        self, first: Float[Tensor, "b t 3 s s"], second: Float[Tensor, "b 3 s s"]
    ) -> tuple[Float[Tensor, "b d"], Float[Tensor, "b d"]]:
        """The unit vectors of the first and second views.

        All frames pass through the ConvNet together, so that BatchNorm treats both views alike.
        """
        frames = torch.cat([first.flatten(0, 1), second])
        features = self.frame(frames)
        past = features[: -len(second)].unflatten(0, first.shape[:2])
        output, _ = self.recurrent(past)
        return (
            normalize(self.project_first(output[:, -1]), dim=1),
            normalize(self.project_second(features[-len(second) :]), dim=1),
        )


def _layer(in_channels: int, out_channels: int) -> Iterator[nn.Module]:
    yield nn.Conv2d(in_channels, out_channels, 3, stride=2, padding=1, bias=False)
    yield nn.BatchNorm2d(out_channels)
    yield nn.ReLU(inplace=True)
