"""Semantic segmentation on a frozen backbone: a small decoder is trained on its maps.

b: images of a batch
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from vantage import draws, processes
from vantage.data.order import epoch_order
from vantage.data.shared_files import shared_files_in_words
from vantage.data.sources.masked import IGNORE_INDEX, MaskedImages, split_masked
from vantage.data.sources.source import HasMasks, Source
from vantage.data.splits import check_apart
from vantage.encoders.normalization.choices import BatchNorm, SplitBatchNorm
from vantage.encoding import Work
from vantage.errors import DataError, UserError
from vantage.evaluate.protocols.segmentation.decoder import Decoder, enlarge, pixel_loss
from vantage.evaluate.protocols.segmentation.feature_maps import FeatureMaps, Squares, mirror_images, try_maps
from vantage.evaluate.result import Outcome
from vantage.evaluate.task import OwnTask, Task
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.confusion import Confusion
from vantage.processes.sharing import own_parts, own_slice, same_on_all, sum_gradients
from vantage.progress import task
from vantage.storage.cache import hash_of
from vantage.storage.state import StateFile, restore, tensors_of

__all__ = ["Segmentation"]

"""Mixed into the seed of the flips."""

_ADAMW: dict[str, Any] = {"betas": (0.9, 0.999), "eps": 1e-8}
"""Settings of AdamW other than learning rate and weight decay."""


@dataclass(frozen=True)
class Segmentation(OwnTask):
    """A decoder of four convolutions on a frozen backbone, trained on images with masks; mean intersection over union.

    InfoMin (arXiv 2005.10243, appendix B) does this on NYU-Depth-v2, but specifies only a frozen backbone, a 4-layer
    decoder and the mean IoU of the labeled classes. The rest is chosen here. Images are resized to a square and flipped
    at random; the backbone's maps of both are kept in the cache. The decoder (see `Decoder`) is trained with AdamW,
    with a learning rate that falls along a cosine to 0, on the mean cross-entropy of pixels that have a class. In
    testing, scores are interpolated to each mask's own size. Raises `UserError` for masks or a backbone that do not
    fit.
    """

    name: ClassVar[str] = "segmentation"
    images_with: ClassVar[str] = "masks"
    version: ClassVar[int] = 1

    size: int = 0
    """Side that images are resized to, in pixels; 0: that of the run's own views."""
    depth: int = -1
    """Which map of the backbone: −1 is the last before the pooling, −2 the one before it, 0 the first."""
    width: int = 128
    """Channels inside the decoder."""
    epochs: int = 60
    """Passes over the training images."""
    batch_size: int = 16
    """Images per step."""
    learning_rate: float = 1e-3
    """Learning rate of AdamW at the start."""
    weight_decay: float = 1e-4
    """Weight decay of AdamW."""
    flip: float = 0.5
    """Share of the training images that are mirrored in an epoch."""
    seed: int = 0
    """Seed of the decoder's initial weights, the order of images and the flips."""

    def __post_init__(self) -> None:
        if self.size < 0 or self.width < 1 or self.epochs < 1 or self.batch_size < 2:
            raise UserError(
                f"segmentation: size is {self.size}, width {self.width}, epochs {self.epochs} and batch_size"
                f" {self.batch_size}; give a size of 0 or more, at least 1 channel and epoch, and batches of 2 or more"
            )
        if not 0 < self.learning_rate < math.inf or not 0 <= self.weight_decay < math.inf or not 0 <= self.flip <= 1:
            raise UserError(
                f"segmentation: learning_rate is {self.learning_rate}, weight_decay {self.weight_decay} and flip"
                f" {self.flip}; the rate must be above 0, the decay 0 or more, flip from 0 to 1"
            )

    def task(self, train: Source, test: Source | None) -> Task:
        """Images with masks; without `test`, a fifth of all of them, drawn with seed 0, which must be in a folder. Test
        masks must have the classes of `train`. Raises `UserError` for a test set of training images or other classes.
        """
        images = _with_masks(train)
        if test is None:
            if not isinstance(images, MaskedImages):
                raise UserError(f"segmentation cannot divide {type(images).__name__}: name a test set")
            return Task(self, *split_masked(images), f"a fifth of the same {len(images)} images, drawn with seed 0")
        test_images = _with_masks(test)
        if test_images.classes != images.classes:
            raise UserError("the test masks have other classes than the training masks: open both with the same list")
        check_apart(images, test_images)
        return Task(self, images, test_images, f"a set of its own{shared_files_in_words(images, test_images)}")

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train a decoder on `train`, count pixels on `test`. Both must have masks (`HasMasks`)."""
        images, test_images = _with_masks(train), _with_masks(test)
        digest, size = encoder.digest(), self.size or encoder.view.size
        try_maps(encoder, size)  # before any image is decoded
        squares = Squares(images, size, work)
        present = squares.present()
        _check_classes(present, images.classes)
        once = replace(work, resident_bytes=0)  # test images are read once
        test_squares = Squares(test_images, size, once)  # now: a mask that does not fit would lose the training
        _check_test(test_images)
        maps = FeatureMaps(encoder, self.depth, squares, self.flip > 0, work)
        decoder = self._train_decoder(maps, work)
        test_maps = FeatureMaps(encoder, self.depth, test_squares, False, once)
        confusion = _count_pixels(test_maps, decoder, test_images, self.batch_size, work)
        if encoder.backbone.training or encoder.digest() != digest:
            raise RuntimeError("the backbone changed while a decoder was trained on it: the result is void")
        test_classes = confusion.present().nonzero().flatten().tolist()
        if absent := ", ".join(images.classes[number] for number in test_classes if number not in present):
            work.progress.warn(
                f"no pixel of the training masks is of {absent}: test pixels of that class count as wrong"
            )
        overlaps = zip(images.classes, confusion.intersection_over_union().tolist(), strict=True)
        details = {"IoU": {name: None if math.isnan(value) else 100.0 * value for name, value in overlaps}}
        how = {
            "size": size,
            "adamw": {name: list(value) if isinstance(value, tuple) else value for name, value in _ADAMW.items()},
            "rates_fall": "along half a cosine, step by step, to 0",
            "decoder": " ".join(str(decoder).split()),
        }
        return Outcome(confusion.measures(), len(images), len(test_images), {}, details, how)

    def _train_decoder(self, maps: FeatureMaps, work: Work) -> Decoder:
        """Train the decoder. Processes share the images of a step and normalize them together, as one process does, up
        to rounding."""
        squares = maps.squares
        channels = maps.of(torch.arange(1)).shape[1]
        with draws.torch_seed(self.seed):
            decoder = Decoder(channels, self.width, len(squares.source.classes), squares.size).to(maps.device)
        per_epoch = max(1, math.ceil(squares.count / self.batch_size))
        optimizer = torch.optim.AdamW(
            decoder.parameters(), self.learning_rate, weight_decay=self.weight_decay, **_ADAMW
        )
        facts = (maps.key, repr(self), torch.__version__)
        state = StateFile(work.cache / "decoders" / f"{hash_of(facts)}.safetensors")
        parts = {"decoder": decoder}
        last = state.read("epochs")
        is_same = same_on_all(last.facts["epochs"] if last else 0)
        start = last.facts["epochs"] if is_same and last and restore(parts, optimizer, last.tensors) else 0
        with task(work.progress, f"decoder, {maps.encoder.name}", self.epochs, start):
            for epoch in range(start, self.epochs):
                loss = torch.zeros(())
                for number, (rows, mirror) in enumerate(self._batches(squares.count, epoch)):
                    progress = (epoch * per_epoch + number) / (self.epochs * per_epoch)
                    optimizer.param_groups[0]["lr"] = self.learning_rate * 0.5 * (1 + math.cos(math.pi * progress))
                    share = own_slice(len(rows))
                    _share_statistics(decoder, len(rows))
                    loss = _loss(decoder, maps, rows[share], mirror[share])
                    optimizer.zero_grad()
                    loss.backward()
                    sum_gradients(decoder.parameters())
                    optimizer.step()
                loss = processes.total(loss.detach())
                work.progress.advance(epoch + 1, f"loss {float(loss):.3f}")
                if state.due and processes.rank() == 0:
                    state.write(tensors_of(parts, optimizer), {"epochs": epoch + 1})
        state.forget()
        BatchNorm().convert(decoder)
        return decoder.eval()

    def _batches(self, count: int, epoch: int) -> Iterator[tuple[Int[Tensor, "b"], Bool[Tensor, "b"]]]:
        """Numbers of an epoch's images in batches, and which of them are mirrored."""
        generator = torch.Generator().manual_seed(draws.mix(self.seed, draws.Purpose.SEGMENTATION_FLIPS, epoch))
        for rows in epoch_order(count, self.seed, epoch).split(self.batch_size):
            mirror = torch.rand(len(rows), generator=generator) < self.flip
            if len(rows) == 1:  # BatchNorm on one small map may have only one value
                rows, mirror = rows.repeat(2), mirror.repeat(2)
            yield rows, mirror


def _share_statistics(decoder: Decoder, images: int) -> None:
    """Normalize a step over all processes. Of fewer images than processes, each process has all: it normalizes them
    alone, since variances over as many copies of them would be less corrected than those of one process."""
    normalization = SplitBatchNorm(processes.count()) if images < processes.count() else BatchNorm()
    normalization.convert(decoder)


def _loss(decoder: Decoder, maps: FeatureMaps, rows: Int[Tensor, "b"], mirror: Bool[Tensor, "b"]) -> Float[Tensor, ""]:
    """What this process's images add to the mean loss over all pixels of the joint batch."""
    mask = mirror_images(maps.squares.masks(rows), mirror).to(maps.device)
    pixels = (mask != IGNORE_INDEX).sum()
    part = pixels / processes.total(pixels).clamp(min=1)
    return part * pixel_loss(enlarge(decoder(maps.of(rows, mirror)), *mask.shape[1:]), mask, IGNORE_INDEX)


def _check_classes(present: list[int], names: tuple[str, ...]) -> None:
    present = [value for value in present if value != IGNORE_INDEX]
    if len(present) < 2:
        only = names[present[0]] if present else "none"
        raise DataError(f"the training masks show one class only ({only}): at least two are needed")


def _check_test(images: HasMasks) -> None:
    if all((images.mask(number) == IGNORE_INDEX).all() for number in range(len(images))):
        raise DataError(f"no pixel of the {len(images)} test images has a class: all are {IGNORE_INDEX}")


@torch.no_grad()
def _count_pixels(maps: FeatureMaps, decoder: nn.Module, images: HasMasks, batch: int, work: Work) -> Confusion:
    """Test pixels by class and prediction, at each mask's own size; the processes share the batches."""
    confusion = Confusion.empty(len(images.classes))
    with task(work.progress, f"test pixels, {maps.encoder.name}", len(images)):
        for numbers in own_parts(torch.arange(len(images)).split(batch)):
            score = decoder(maps.of(numbers))
            for number, one in zip(numbers.tolist(), score, strict=True):
                truth = images.mask(number)
                guess = enlarge(one[None], *truth.shape)[0].argmax(0)
                confusion = confusion.plus(truth.flatten().long(), guess.flatten().cpu())
            work.progress.advance(int(numbers[-1]) + 1)
    return Confusion(processes.total(confusion.count.to(processes.device())).cpu())


def _with_masks(source: Source) -> HasMasks:
    if not isinstance(source, HasMasks):
        raise UserError("segmentation needs images with masks: name two folders, IMAGES#MASKS")
    return source
