"""Batches of images for training: files decoded and cropped by workers, in an order fixed by seed and epoch.

b: images of a batch on this process   v, s: height and width of crops
"""

import signal
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from multiprocessing import get_start_method
from multiprocessing.reduction import ForkingPickler
from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Int, UInt8
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Sampler, default_collate

from vantage.data.order import BatchOrder, image_seed, steps_in
from vantage.data.scan import OnBadImage
from vantage.data.sources.source import Source, blocks_of
from vantage.errors import DataError, UnreadableImage

_TRIES = 100
_LAST_SECONDS = 60  # that a worker still works after SIGTERM


@dataclass(frozen=True)
class Batch:
    """The images of one step on this process."""

    image: Int[Tensor, "b"]
    """Their numbers in the source."""
    pixels: tuple[UInt8[Tensor, "b 3 _ _"], ...]
    """Crops from the workers, one tensor for each view; or a single tensor of whole images, not yet cropped."""

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device; the copy from pinned memory does not block."""
        pixels = tuple(view.to(device, non_blocking=True) for view in self.pixels)
        return Batch(self.image.to(device, non_blocking=True), pixels)

    def pin_memory(self) -> "Batch":
        """The same batch in pinned memory, which an accelerator can read by itself."""
        return Batch(self.image.pin_memory(), tuple(view.pin_memory() for view in self.pixels))


@runtime_checkable
class Crops(Protocol):
    """The part of view making that runs where images are decoded."""

    def crop(self, image: UInt8[Tensor, "3 h w"], generator: torch.Generator) -> tuple[UInt8[Tensor, "3 _ _"], ...]:
        """One crop for each view, all random numbers from `generator`; the sizes are the same for every image."""
        ...


class StreamedImages:
    """Images decoded and cropped by workers while the device trains.

    The generator of an image's crops comes from (seed, epoch, image number), so neither the number of workers nor a
    resume in the middle of an epoch changes a pixel.

    An image that cannot be read stops the run with an error that names it (`stop`), or is replaced by the next readable
    image of the source (`skip`); the batch then carries the replacement's number. `missed` holds the images of the
    current epoch that were replaced so far.
    """

    def __init__(
        self,
        source: Source,
        crops: Crops,
        order: BatchOrder,
        *,
        num_workers: int = 2,
        on_bad_image: OnBadImage = "stop",
        prefetch: int = 2,
    ) -> None:
        self.steps = steps_in(len(source), order.batch_size)
        if num_workers > 0:
            _check_sendable(source)
            import_module("torchvision.transforms.v2")  # once, before workers are forked that decode and resize with it
        self._plan, self._begun = _StepSampler(blocks_of(source), order), 0
        self.missed: list[UnreadableImage] = []
        with _no_advice():
            self._loader = DataLoader(
                _CropDataset(source, crops, order.seed, on_bad_image),
                batch_sampler=self._plan,
                num_workers=num_workers,
                collate_fn=_stack,
                pin_memory=torch.cuda.is_available(),
                worker_init_fn=_outlast_signals,
                persistent_workers=num_workers > 0,
                prefetch_factor=prefetch if num_workers > 0 else None,
            )

    def batches(self, epoch: int, start_step: int = 0) -> Iterator[Batch]:
        """The batches of an epoch from a step on; raises `UnreadableImage`, and `DataError` if a file of many images
        changes meanwhile.

        Only one epoch at a time: starting another ends the previous one.
        """
        self._plan.epoch, self._plan.start_step = epoch, start_step
        self._begun = begun = self._begun + 1
        self.missed.clear()
        with _no_advice():
            batches = iter(self._loader)
        while begun == self._begun and (loaded := next(batches, None)) is not None:
            if isinstance(loaded, DataError):
                try:
                    raise loaded
                finally:
                    del loaded  # it refers to this frame; the cycle would keep the workers until garbage collection
            self.missed += loaded.missed
            yield loaded.batch


@contextmanager
def _no_advice() -> Iterator[None]:
    """Without torch's warning that a machine has fewer cores than there are workers, which wait for a disk too."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This DataLoader will create", UserWarning)
        yield


def _outlast_signals(_: int) -> None:
    """In a worker: SIGINT and SIGTERM are for the training process, which needs batches until it ends cleanly, but they
    often go to all processes at once (Ctrl-C, `timeout`, Slurm). After SIGTERM a worker ends in a minute, since the
    training process sends it too if nothing else ends a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: signal.alarm(_LAST_SECONDS))


def _check_sendable(source: Source) -> None:
    """Raises `DataError` if the source must be sent to worker processes but cannot be pickled."""
    if get_start_method() == "fork":  # a forked worker has it already
        return
    try:
        ForkingPickler.dumps(source)
    except Exception as error:  # each kind of object refuses in its own way
        raise DataError(
            f"{type(source).__name__} cannot be sent to the processes that decode ({error}): make it picklable, or "
            "decode in the training process (data.num_workers 0)"
        ) from error


class _StepSampler(Sampler[list[tuple[int, int]]]):
    """For each step the (epoch, image number) pairs of this process."""

    def __init__(self, starts: Int[Tensor, "s"], order: BatchOrder) -> None:
        self.starts, self.order = starts, order
        self.steps, self.epoch, self.start_step = steps_in(int(starts[-1]), order.batch_size), 0, 0

    def __len__(self) -> int:
        return max(0, self.steps - self.start_step)

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        epoch, order, size = self.epoch, self.order.epoch(self.starts, self.epoch), self.order.batch_size
        for step in range(self.start_step, self.steps):
            joint = order.part(step * size, (step + 1) * size)
            yield [(epoch, number) for number in self.order.share(joint)[0].tolist()]


class _Sample(NamedTuple):
    number: int
    crops: tuple[UInt8[Tensor, "3 _ _"], ...]
    replaced: UnreadableImage | None


class _Loaded(NamedTuple):
    batch: Batch
    missed: list[UnreadableImage]


class _CropDataset(Dataset[_Sample | DataError]):
    """Decode one image and crop it. A failure is returned, since an exception would lose its type between processes."""

    def __init__(self, source: Source, crops: Crops, seed: int, on_bad_image: OnBadImage) -> None:
        self.source, self.crops, self.seed, self.on_bad_image = source, crops, seed, on_bad_image
        self._generator: torch.Generator | None = None

    def __getitem__(self, key: tuple[int, int]) -> _Sample | DataError:
        epoch, number = key
        first: UnreadableImage | None = None
        for _ in range(_TRIES):
            try:
                image = self.source.image(number)
            except UnreadableImage as error:
                first = first or error
                if self.on_bad_image == "stop":
                    break
                number = (number + 1) % len(self.source)
            except DataError as error:
                return error
            else:
                if self._generator is None:
                    self._generator = torch.Generator()
                self._generator.manual_seed(image_seed(self.seed, epoch, number))
                return _Sample(number, self.crops.crop(image, self._generator), first)
        assert first is not None
        return first


def _stack(samples: Sequence[_Sample | DataError]) -> _Loaded | DataError:
    """The crops of each view as one tensor; or the first failure."""
    good: list[_Sample] = []
    for sample in samples:
        if isinstance(sample, DataError):
            return sample
        good.append(sample)
    image = torch.tensor([sample.number for sample in good], dtype=torch.int64)
    pixels = tuple(map(_stack_crops, zip(*(sample.crops for sample in good), strict=True)))
    return _Loaded(Batch(image, pixels), [sample.replaced for sample in good if sample.replaced])


def _stack_crops(crops: tuple[UInt8[Tensor, "*_size"], ...]) -> UInt8[Tensor, "b *_size"]:
    """The crops as one tensor in the memory layout of the first, so that each is copied as one run of bytes; a worker
    copies them straight into memory shared with the training process."""
    first = crops[0]
    order = sorted(range(first.dim()), key=lambda axis: -first.stride(axis))
    stack = default_collate([crop.permute(order) for crop in crops])
    return stack.permute(0, *(order.index(axis) + 1 for axis in range(first.dim())))
