"""What a network makes of the images of a source, through a view without chance: all in memory, or batch by batch.

n: images   b: images of a batch   c: channels   h, w: size of a view   d: width of the features
s: side of a crop in pixels
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from vantage.data.sources.source import Source
from vantage.data.threads import CORES, prefetch
from vantage.encoders.backbones import width_of
from vantage.errors import UserError
from vantage.progress import Progress, QuietProgress
from vantage.storage.cache import cache_folder
from vantage.views.evaluation import EvaluationView, Straight

__all__ = ["Work"]

_AHEAD = 3
"""Batches that are decoded while one is encoded."""


@dataclass(frozen=True)
class Work:
    """What the work after training computes with. Nothing here changes a result beyond rounding, but for
    `resident_bytes`."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator where there is one."""

    batch_size: int = 256
    """Images that go through the network at once."""

    num_workers: int = CORES
    """Threads that decode images; as many as this process may use processors."""

    resident_bytes: int = 2 << 30
    """A linear protocol that looks at the images again and again keeps sets of one image size in memory up to so many
    bytes, which draws other crops than for larger sets; features of more are read from the cache as they are used."""

    cache: Path = field(default_factory=cache_folder)
    """Folder where features are kept, under a hash of the encoder, the images and the view."""

    progress: Progress = field(default_factory=QuietProgress)
    """Tells people how far it is."""

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise UserError(f"batch is {self.batch_size}: give at least 1")

    def resolved_device(self) -> torch.device:
        """The device. Raises `UserError` where there is none of that name here."""
        if self.device != "auto":
            try:
                return torch.empty(0, device=self.device).device
            except (RuntimeError, AssertionError) as problem:  # torch tells some of these by an assertion
                raise UserError(
                    f"the device {self.device!r} cannot be had here ({str(problem).splitlines()[0][:120]}): "
                    "give cpu, cuda:0 or auto"
                ) from problem
        found = torch.accelerator.current_accelerator()
        return found if found is not None and torch.accelerator.is_available() else torch.device("cpu")


def encode_all(
    network: nn.Module, view: EvaluationView | Straight, source: Source, work: Work, name: str
) -> Float[Tensor, "n d"]:
    """The features of every image, on the CPU in float32; see `encode_batches`."""
    vector = torch.empty(len(source), width_of(network))
    for start, part in encode_batches(network, view, source, work, name):
        vector[start : start + len(part)] = part
    return vector


def encode_batches(
    network: nn.Module, view: EvaluationView | Straight, source: Source, work: Work, name: str, start: int = 0
) -> Iterator[tuple[int, Float[Tensor, "b d"]]]:
    """First number and features of each batch from image `start` on, in order, with a few batches in memory at a
    time; `name` is what the progress says is at work.

    Batches begin at multiples of `work.batch_size` counted from `start`, so that a continued run multiplies the same
    matrices. The network is moved to the device, in place, and its mode is left as it is. Raises `UnreadableImage`,
    which names it, for an image that cannot be decoded.
    """
    device = work.resolved_device()
    network = network.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]

    def crop(number: int) -> UInt8[Tensor, "3 s s"]:
        return view.crop(source.image(number))

    numbers = list(range(start, len(source), work.batch_size))
    parts = (range(first, min(first + work.batch_size, len(source))) for first in numbers)
    work.progress.start(f"features, {name}", len(source), start)
    try:
        for first, crops in zip(numbers, in_threads(crop, parts, work.num_workers), strict=True):
            yield first, encode(network, view.finish(crops.to(device, non_blocking=True))).cpu()
            work.progress.advance(first + len(crops))
    finally:
        work.progress.stop()


@contextmanager
def in_evaluation(module: nn.Module) -> Iterator[None]:
    """Evaluation mode for a while; afterwards each part is as it was, since a frozen one may differ from the others."""
    before = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in before:
            part.training = training


@torch.no_grad()
def encode(network: nn.Module, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
    """Features in float32."""
    return network(images.contiguous(memory_format=torch.channels_last)).float()


def in_threads(make: Callable[[int], Tensor], parts: Iterator[Sequence[int]], workers: int) -> Iterator[Tensor]:
    """For each part, in order, what `make` gives for its numbers, stacked; a few parts ahead are in the making.

    An exception of `make` comes out here.
    """
    return map(torch.stack, prefetch(make, parts, workers, _AHEAD))
