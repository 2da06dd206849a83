"""Features of a source's images, through a view without random choices: all in memory, or batch by batch.

n: images   b: images of a batch   c: channels   h, w: size of a view   d: width of the features
s: side of a crop in pixels
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Float, UInt8
from torch import Tensor, nn

from vantage.composition.field_types import expect
from vantage.composition.public import name_wrong_types
from vantage.data.sources.source import Source
from vantage.data.threads import CORES, prefetch
from vantage.encoders.activations import largest_output
from vantage.encoders.backbones.resnet import width_of
from vantage.encoders.modes import in_evaluation
from vantage.errors import UserError
from vantage.machine.allocator import check_memory, check_views
from vantage.machine.devices import device_named
from vantage.machine.usual_torch import usual_torch
from vantage.processes.sharing import own_parts, parts_in_order
from vantage.progress import Progress, QuietProgress, task
from vantage.storage.cache import cache_folder
from vantage.views.evaluation import EvaluationView, Straight

__all__ = ["Work"]

_AHEAD = 3
"""Batches that are decoded while one is encoded."""


@name_wrong_types
@dataclass(frozen=True)
class Work:
    """Resources for work after training: device, threads, memory and cache. Only `resident_bytes` changes results by
    more than rounding."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto takes an accelerator if there is one."""

    batch_size: int = 256
    """Images that go through the network at once."""

    num_workers: int = CORES
    """Threads that decode images; by default one for each processor that this process may use."""

    resident_bytes: int = 2 << 30
    """Most bytes held in memory. Linear protocols that read the images in every epoch hold a set of one image size in
    memory if it fits, and then draw other crops than for a larger set. Features that do not fit are read from the cache
    as they are used."""

    cache: Path = field(default_factory=cache_folder)
    """Folder of the cache, which holds features under a hash of the encoder, the images and the view."""

    progress: Progress = field(default_factory=QuietProgress)
    """Reports progress."""

    def __post_init__(self) -> None:
        expect(self.cache, Path, "the cache", "a pathlib.Path")  # now, not after hours of work
        expect(self.device, str, "the device", "a name, such as 'cpu' or 'cuda:0'")
        expect(self.progress, Progress, "the progress", "vantage.progress.progress_for()")
        if self.batch_size < 1:
            raise UserError(f"batch_size is {self.batch_size}: give at least 1")
        if self.num_workers < 1:
            raise UserError(f"num_workers is {self.num_workers}: give at least 1")

    def resolved_device(self) -> torch.device:
        """The device. Raises `UserError` if this machine has no such device."""
        return device_named(self.device)


def encode_all(
    network: nn.Module, view: EvaluationView | Straight, source: Source, work: Work, name: str
) -> Float[Tensor, "n d"]:
    """The features of every image, on the CPU in float32; see `encode_batches`."""
    vector = torch.empty(len(source), width_of(network), dtype=torch.float32, device="cpu")
    for start, part in encode_batches(network, view, source, work, name):
        vector[start : start + len(part)] = part
    return vector


def encode_batches(
    network: nn.Module,
    view: EvaluationView | Straight,
    source: Source,
    work: Work,
    name: str,
    start: int = 0,
    alone: bool = False,
) -> Iterator[tuple[int, Float[Tensor, "b d"]]]:
    """The number of the first image and the features of each batch, in order from image `start` on, with a few batches
    in memory at a time. `name` is the encoder's name in the progress report.

    Batches begin at multiples of `work.batch_size` counted from `start`, so that a continued run multiplies the same
    matrices. Several processes share the work, and each gets all batches, bit for bit as one process computes them if
    their networks are equal. All must make this call and iterate to the end. With `alone`, this process computes every
    batch and waits for no other. The network encodes in evaluation mode. It is moved to the device in place. Raises
    `UnreadableImage`, with the image's name, for an image that cannot be decoded, and `UserError` for views that take
    too much memory.
    """
    device = work.resolved_device()
    network = _on_device(network, view, min(work.batch_size, len(source)), device)

    def crop(number: int) -> UInt8[Tensor, "3 s s"]:
        return view.crop(source.image(number))

    numbers = range(start, len(source), work.batch_size)
    turns = numbers if alone else own_parts(numbers)
    parts = (range(first, min(first + work.batch_size, len(source))) for first in turns)
    crops = in_threads(crop, parts, work.num_workers)
    own_vectors = (encode(network, view.finish(part.to(device, non_blocking=True))) for part in crops)
    each = own_vectors if alone else parts_in_order(own_vectors, len(numbers), (width_of(network),))
    with task(work.progress, f"features, {name}", len(source), start):
        for first, vector in zip(numbers, each, strict=True):
            yield first, vector.cpu()
            work.progress.advance(first + len(vector))


def _on_device(network: nn.Module, view: EvaluationView | Straight, images: int, device: torch.device) -> nn.Module:
    """The network on its device. Raises `UserError` if `images` images at once take too much memory there."""
    remedy, one = "give a smaller --batch-size", torch.zeros(1, len(view.channels), view.size, view.size)
    check_views(images, 4 * one.numel(), str(device), remedy)
    network = network.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    with in_evaluation(network):
        largest = largest_output(network, partial(encode, network, one.to(device)))
    check_memory(images * largest, str(device), f"a layer's output for {images:,} images at once", remedy)
    return network


@usual_torch()
@torch.no_grad()
def encode(network: nn.Module, images: Float[Tensor, "b c h w"]) -> Float[Tensor, "b d"]:
    """Features in float32, from a network of any precision, in evaluation mode: a loop of the caller's own may have
    left it in training mode, where BatchNorm mixes the images of a batch and changes."""
    dtype = next((parameter.dtype for parameter in network.parameters()), images.dtype)
    with in_evaluation(network):
        return network(images.to(dtype).contiguous(memory_format=torch.channels_last)).float()


def in_threads(make: Callable[[int], Tensor], parts: Iterator[Sequence[int]], workers: int) -> Iterator[Tensor]:
    """The stacked results of `make` for the numbers of each part, in order; a few parts are computed ahead.

    An exception in `make` is raised here.
    """
    return map(torch.stack, prefetch(make, parts, workers, _AHEAD))
