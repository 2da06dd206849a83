"""Semantic segmentation on a frozen backbone: a small decoder is trained on its maps.

n: images   b: images of a batch   c: channels of an image   d: channels of a map   y, x: its height and width
s: side of an image in pixels   h, w: height and width of a mask
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor, nn
from torchvision.transforms.v2 import functional

from vantage import draws
from vantage.data.masked import IGNORED, MaskedImages
from vantage.data.order import epoch_order
from vantage.data.source import Source
from vantage.embedding import Work, in_threads
from vantage.errors import DataError, UserError
from vantage.evaluate.confusion import Confusion
from vantage.evaluate.decoder import Decoder, MapAt, enlarged, pixel_loss
from vantage.evaluate.outcome import Outcome
from vantage.trained import Trained

__all__ = ["Segmentation"]

_FLIPS = 0x5E9F
"""What a seed is for."""


@dataclass(frozen=True)
class Segmentation:
    """A decoder of four convolutions on a frozen backbone, trained on images with masks; mean intersection over union.

    InfoMin (arXiv 2005.10243, appendix B) does so on NYU-Depth-v2 and says no more than: frozen backbone, 4-layer
    decoder, mean IoU of the labelled classes. All else is chosen here. Images are resized to a square and flipped at
    random; the decoder (see `Decoder`) is trained with AdamW, its rate falling along a cosine to 0, on the mean
    cross-entropy of pixels that have a class. In testing, scores are interpolated to each mask's own size. The backbone
    stays in evaluation mode, which is checked.

    Raises `UserError` for a source without masks, with one class only, or whose masks do not fit their images, and
    for a backbone that shows no maps.
    """

    name: ClassVar[str] = "segmentation"
    version: ClassVar[int] = 1

    size: int = 0
    """Side that images are resized to, in pixels; 0 takes that of the run's own views."""
    depth: int = -1
    """Which map of the backbone: −1 is the last before the pooling, −2 the one before it, 0 the first."""
    width: int = 128
    """Channels inside the decoder."""
    epochs: int = 60
    """Passes over the training images."""
    batch: int = 16
    """Images of a step."""
    rate: float = 1e-3
    """Learning rate of AdamW at the start."""
    weight_decay: float = 1e-4
    """Weight decay of AdamW."""
    flip: float = 0.5
    """Share of the training images that are mirrored in an epoch."""
    seed: int = 0
    """Of the decoder's initial weights, the order of images and the flips."""

    def __post_init__(self) -> None:
        if self.size < 0 or self.width < 1 or self.epochs < 1 or self.batch < 2:
            raise UserError(
                f"segmentation: size is {self.size}, width {self.width}, epochs {self.epochs} and batch {self.batch};"
                " give a size of 0 or more, at least 1 channel and epoch, and batches of 2 or more"
            )
        if not self.rate > 0 or self.weight_decay < 0 or not 0 <= self.flip <= 1:
            raise UserError(
                f"segmentation: rate is {self.rate}, weight_decay {self.weight_decay} and flip {self.flip}; the rate"
                " must be above 0, the decay 0 or more, flip from 0 to 1"
            )

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train a decoder on `train`, count pixels on `test`. Both must be `MaskedImages`."""
        known, asked = _with_masks(train), _with_masks(test)
        before = trained.digest()
        seen = _Seen(trained, self.size or trained.view.size, self.depth, work)
        decoder = self._trained_decoder(seen, known, work)
        confusion = _counted(seen, decoder, asked, len(known.classes), self.batch)
        if trained.backbone.training or trained.digest() != before:
            raise RuntimeError("the backbone changed while a decoder was trained on it: the result is void")
        if not confusion.count.sum():
            raise DataError(f"no pixel of the {len(asked)} test images has a class: all are {IGNORED}")
        found = zip(known.classes, confusion.intersection_over_union().tolist(), strict=True)
        details = {"IoU": {name: None if math.isnan(value) else 100.0 * value for name, value in found}}
        return Outcome(confusion.measures(), len(known), len(asked), {}, details)

    def _trained_decoder(self, seen: "_Seen", known: MaskedImages, work: Work) -> Decoder:
        pixels, masks = seen.loaded(known)
        present = [value for value in masks.unique().tolist() if value != IGNORED]
        if len(present) < 2:
            named = known.classes[present[0]] if present else "none"
            raise DataError(
                f"the training masks show one class only ({named}): at least two are needed to be told apart"
            )
        maps = seen.both_ways(pixels)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            decoder = Decoder(seen.channels(pixels), self.width, len(known.classes), seen.size).to(seen.device)
        steps = self.epochs * max(1, math.ceil(len(pixels) / self.batch))
        optimizer = torch.optim.AdamW(decoder.parameters(), self.rate, weight_decay=self.weight_decay)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
        work.teller.start(f"decoder, {seen.trained.name}", self.epochs)
        loss = torch.zeros(())
        for epoch in range(self.epochs):
            generator = torch.Generator().manual_seed(draws.mix(self.seed, _FLIPS, epoch))
            for rows in epoch_order(len(pixels), self.seed, epoch).split(self.batch):
                flipped = torch.rand(len(rows), generator=generator) < self.flip
                if len(rows) == 1:  # BatchNorm on one small map may have one value only
                    rows, flipped = rows.repeat(2), flipped.repeat(2)
                features = seen.chosen(pixels, maps, rows, flipped)
                mask = mirrored(masks[rows], flipped).to(seen.device)
                loss = pixel_loss(enlarged(decoder(features), *mask.shape[1:]), mask, IGNORED)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
            work.teller.advance(epoch + 1, f"loss {float(loss.detach()):.3f}")
        work.teller.stop()
        return decoder.eval()


class _Seen:
    """Images as squares, and the maps that a frozen backbone makes of them."""

    def __init__(self, trained: Trained, size: int, depth: int, work: Work) -> None:
        self.trained, self.size, self.work, self.device = trained, size, work, work.place()
        self.map = MapAt(trained.backbone, depth).eval().to(self.device)

    def square(self, image: UInt8[Tensor, "3 h w"]) -> UInt8[Tensor, "3 s s"]:
        """The whole image, resized on both sides."""
        return functional.resize(image, [self.size, self.size], antialias=True)

    def loaded(self, source: MaskedImages) -> tuple[UInt8[Tensor, "n 3 s s"], UInt8[Tensor, "n s s"]]:
        """All training images and masks as squares; masks take the class of the nearest pixel."""

        def both(number: int) -> UInt8[Tensor, "4 s s"]:
            mask = fitting(source, number, image := source.image(number))
            small = functional.resize(
                mask[None], [self.size, self.size], interpolation=functional.InterpolationMode.NEAREST_EXACT
            )
            return torch.cat([self.square(image), small])

        parts = (range(first, min(first + 64, len(source))) for first in range(0, len(source), 64))
        whole = torch.cat(list(in_threads(both, parts, self.work.workers)))
        return whole[:, :3], whole[:, 3]

    @torch.no_grad()
    def of(self, pixels: UInt8[Tensor, "b 3 s s"]) -> Float[Tensor, "b d y x"]:
        """Maps of some images."""
        return self.map(self.trained.view.finish(pixels.to(self.device)))

    def channels(self, pixels: UInt8[Tensor, "n 3 s s"]) -> int:
        """Channels d of the map."""
        return self.of(pixels[:1]).shape[1]

    def both_ways(self, pixels: UInt8[Tensor, "n 3 s s"]) -> Float[Tensor, "2 n d y x"] | None:
        """Maps of all images and of their mirror images, once for all epochs; none where they are too many to keep."""
        one = self.of(pixels[:1])
        if 2 * len(pixels) * one.numel() * one.element_size() > self.work.resident_bytes:
            return None
        kept = one.new_empty(2, len(pixels), *one.shape[1:])
        self.work.teller.start(f"maps, {self.trained.name}", len(pixels))
        for rows in torch.arange(len(pixels)).split(64):
            kept[0, rows], kept[1, rows] = self.of(pixels[rows]), self.of(pixels[rows].flip(3))
            self.work.teller.advance(int(rows[-1]) + 1)
        self.work.teller.stop()
        return kept

    def chosen(
        self,
        pixels: UInt8[Tensor, "n 3 s s"],
        maps: Float[Tensor, "2 n d y x"] | None,
        rows: Int[Tensor, "b"],
        flipped: Bool[Tensor, "b"],
    ) -> Float[Tensor, "b d y x"]:
        """Maps of a batch, kept or made anew."""
        if maps is None:
            return self.of(mirrored(pixels[rows], flipped))
        return maps[flipped.long().to(maps.device), rows.to(maps.device)]


def mirrored(images: UInt8[Tensor, "b *c s s"], flipped: Bool[Tensor, "b"]) -> UInt8[Tensor, "b *c s s"]:
    """Some of the images, left to right."""
    return torch.where(flipped.view(-1, *[1] * (images.dim() - 1)), images.flip(-1), images)


def fitting(source: MaskedImages, number: int, image: UInt8[Tensor, "3 h w"]) -> UInt8[Tensor, "h w"]:
    """The mask of an image; raises `DataError` where it has another size."""
    mask = source.mask(number)
    if mask.shape != image.shape[1:]:
        raise DataError(
            f"the mask of {source.name(number)} is {mask.shape[1]} x {mask.shape[0]} pixels, but the image is"
            f" {image.shape[2]} x {image.shape[1]}: a mask has the size of its image"
        )
    return mask


@torch.no_grad()
def _counted(seen: _Seen, decoder: nn.Module, asked: MaskedImages, classes: int, batch: int) -> Confusion:
    """Test pixels by class and guess, at each mask's own size."""
    confusion = Confusion.empty(classes)
    seen.work.teller.start(f"test pixels, {seen.trained.name}", len(asked))
    for first in range(0, len(asked), batch):
        images = [asked.image(number) for number in range(first, min(first + batch, len(asked)))]
        score = decoder(seen.of(torch.stack([seen.square(image) for image in images])))
        for number, (image, one) in enumerate(zip(images, score, strict=True), first):
            truth = fitting(asked, number, image)
            guess = enlarged(one[None], *truth.shape)[0].argmax(0)
            confusion = confusion.plus(truth.flatten().long(), guess.flatten().cpu())
        seen.work.teller.advance(first + len(images))
    seen.work.teller.stop()
    return confusion


def _with_masks(source: Source) -> MaskedImages:
    if not isinstance(source, MaskedImages):
        raise UserError("segmentation needs images with masks: name two folders, IMAGES#MASKS")
    return source
