"""Linear classification on a frozen backbone, with random crops of the training images.

n: images   b: images of a batch   d: width of the features   c: classes   s: side of a view in pixels

Two published protocols. Every learning rate is trained side by side on the same features, twice: once on all
training images, and once without a tenth held out of each class. The second set of classifiers chooses the rate,
on the tenth it has not seen; what is reported is the classifier of the first set with this rate, after the last
epoch. So one pass over the images chooses and trains, the classifier that is reported is trained exactly by the
protocol, and no test label is looked at before.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from vantage import draws
from vantage.data.order import epoch_order, image_seed
from vantage.data.resident import decode_all, fits
from vantage.data.source import Source
from vantage.embedding import Work, encode, features_of, in_threads
from vantage.errors import DataError, UserError
from vantage.evaluate.accuracy import accuracy
from vantage.evaluate.heads import Heads
from vantage.evaluate.labelled import held_out, with_labels
from vantage.evaluate.outcome import Outcome
from vantage.trained import Trained
from vantage.views.augmentation import Augmentation
from vantage.views.geometry import Flip, RandomResizedCrop

__all__ = ["LinearMoCo", "LinearPyContrast"]

_HELD_OUT = 0.1
"""Share of each class of the training images that chooses the rate."""
_ORDER, _VIEWS = 0x11EA, 0x11EB  # what a seed is for


@dataclass(frozen=True)
class LinearMoCo:
    """Linear classification as MoCo's code does it (arXiv 1911.05722, §4.1).

    Pooled features, no BatchNorm, weights from N(0, .01²), biases 0; SGD with momentum .9 and no weight decay, the
    rate times .1 at epochs 60 and 80 of 100; random resized crop and flip in training, the middle of the resized
    image in testing (`Trained.view`: 224 of 256 at the paper's size, the whole image up to 96 pixels). The
    backbone stays in evaluation mode, which is checked.

    The code's rate is 30, JCL's on ImageNet-100 is 10. `rates=(30.0,)` is the code's protocol without a choice;
    the others are for features of another scale, such as those of small images.
    """

    name: ClassVar[str] = "linear-moco"
    version: ClassVar[int] = 1

    rates: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    """Learning rates trained side by side, for a batch of 256. With one rate nothing is held out."""
    epochs: int = 100
    """Passes over the training images; the rate falls after 60 % and 80 % of them."""
    batch: int = 256
    """Images of a step; rates are not scaled by it."""
    smallest_area: float = 0.08
    """Least share of the image that a crop takes."""
    seed: int = 0
    """Of the order, the crops, the initial weights and the images held out."""

    def __post_init__(self) -> None:
        _check(self.rates, self.epochs, self.batch)

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`."""
        falls = (round(0.6 * self.epochs), round(0.8 * self.epochs))
        plan = _Plan(self.rates, self.epochs, self.batch, self.smallest_area, self.seed, falls, 0.1, _moco_head)
        return _judge(plan, trained, train, test, work)


@dataclass(frozen=True)
class LinearPyContrast:
    """Linear classification as PyContrast's code does it, which InfoMin reports (arXiv 2005.10243).

    As `LinearMoCo`, but for 60 epochs, the rate times .2 after epochs 30, 40 and 50, crops of at least .2 of the
    image, and torch's own initial weights.
    """

    name: ClassVar[str] = "linear-pycontrast"
    version: ClassVar[int] = 1

    rates: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    """Learning rates trained side by side, for a batch of 256; the code's is 30. With one rate nothing is held out."""
    epochs: int = 60
    """Passes over the training images; the rate falls after 3/6, 4/6 and 5/6 of them."""
    batch: int = 256
    """Images of a step; rates are not scaled by it."""
    smallest_area: float = 0.2
    """Least share of the image that a crop takes."""
    seed: int = 0
    """Of the order, the crops, the initial weights and the images held out."""

    def __post_init__(self) -> None:
        _check(self.rates, self.epochs, self.batch)

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`."""
        falls = tuple(round(self.epochs * sixths / 6) for sixths in (3, 4, 5))
        plan = _Plan(self.rates, self.epochs, self.batch, self.smallest_area, self.seed, falls, 0.2, _torch_head)
        return _judge(plan, trained, train, test, work)


@dataclass(frozen=True)
class _Plan:
    """What the two protocols set differently."""

    rates: tuple[float, ...]
    epochs: int
    batch: int
    smallest_area: float
    seed: int
    falls: tuple[int, ...]
    fall: float
    initial: Callable[[int, int], tuple[Tensor, Tensor]]

    def factor(self, epoch: int) -> float:
        """What the rates are multiplied with in an epoch."""
        return self.fall ** sum(epoch >= fall for fall in self.falls)

    def heads(self, width: int, classes: int, rates: tuple[float, ...], device: torch.device) -> Heads:
        """Classifiers at their common start."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.seed)
            weight, bias = self.initial(classes, width)
        return Heads(weight.to(device), bias.to(device), rates)


def _check(rates: tuple[float, ...], epochs: int, batch: int) -> None:
    if not rates or min(rates) <= 0:
        raise UserError(f"linear evaluation: rates are {rates}; give at least one, all above 0")
    if epochs < 1 or batch < 1:
        raise UserError(f"linear evaluation: epochs is {epochs} and batch {batch}; both must be 1 or more")


def _moco_head(classes: int, width: int) -> tuple[Tensor, Tensor]:
    return torch.randn(classes, width) * 0.01, torch.zeros(classes)


def _torch_head(classes: int, width: int) -> tuple[Tensor, Tensor]:
    layer = nn.Linear(width, classes)
    return layer.weight.detach(), layer.bias.detach()


def _judge(plan: _Plan, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
    device = work.place()
    before = trained.digest()
    trained.backbone.to(device, memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
    train, label = with_labels(train)
    test, test_label = with_labels(test)
    classes = max(len(train.classes), len(test.classes), int(label.max()) + 1)
    choosing = plan.rates if len(plan.rates) > 1 else ()
    held = held_out(label, _HELD_OUT, plan.seed) if choosing else torch.zeros(len(label), dtype=torch.bool)
    whole = plan.heads(trained.width, classes, plan.rates, device)
    partial = plan.heads(trained.width, classes, choosing, device)
    crop = RandomResizedCrop(trained.view.size, (plan.smallest_area, 1.0))
    view = Augmentation(crop, (Flip(0.5), *trained.view.operations))
    images = _images(train, view, plan, work)
    work.teller.start(f"linear classifiers, {trained.name}", plan.epochs)
    for epoch in range(plan.epochs):
        factor = plan.factor(epoch)
        for rows, views in images(epoch):
            features, wanted = encode(trained.backbone, views), label[rows].to(device)
            whole.step(features, wanted, factor)
            if choosing:
                seen = ~held[rows].to(device)
                partial.step(features[seen], wanted[seen], factor)
        work.teller.advance(epoch + 1)
    work.teller.stop()
    known = features_of(trained, train, work)[held].to(device) if choosing else None
    best, chosen = _best(plan, partial, known, label[held].to(device))
    guess = whole.predict(best, features_of(trained, test, work).to(device)).cpu()
    if trained.backbone.training or trained.digest() != before:
        raise RuntimeError("the backbone changed while a linear classifier was trained on it: the result is void")
    return Outcome(accuracy(guess, test_label, classes).measures(), len(label), len(test_label), chosen)


def _best(
    plan: _Plan, partial: Heads, known: Float[Tensor, "n d"] | None, label: Int[Tensor, "n"]
) -> tuple[int, dict[str, float | int | str | list[float]]]:
    """The place of the rate with the best accuracy on the images held out (of equal ones the lowest), and how it was
    found."""
    if known is None:
        return 0, {"rate": plan.rates[0], "by": "the protocol"}
    accuracies = partial.accuracies(known, label)
    order = sorted(range(len(plan.rates)), key=lambda place: (-accuracies[place], plan.rates[place]))
    by = f"accuracy on {len(label)} training images held out of other classifiers with the same rates"
    return order[0], {
        "rate": plan.rates[order[0]],
        "by": by,
        "rates": list(plan.rates),
        "held_out_accuracy": accuracies,
    }


_Epoch = Iterator[tuple[Int[Tensor, "b"], Float[Tensor, "b 3 s s"]]]


def _images(source: Source, view: Augmentation, plan: _Plan, work: Work) -> Callable[[int], _Epoch]:
    """The views of an epoch, batch by batch. The last batch may be small, as in the protocols' code."""
    device = work.place()

    def order(epoch: int) -> tuple[Int[Tensor, "b"], ...]:
        return epoch_order(len(source), draws.mix(plan.seed, _ORDER), epoch).split(plan.batch)

    def generator(epoch: int, step: int) -> torch.Generator:
        return torch.Generator().manual_seed(draws.mix(plan.seed, _VIEWS, epoch, step))

    def resident(epoch: int) -> _Epoch:
        for step, rows in enumerate(order(epoch)):
            images = pixels[rows.to(pixels.device)]
            yield rows, view.batch(images, generator(epoch, step))

    def streamed(epoch: int) -> _Epoch:
        def crop(number: int) -> UInt8[Tensor, "3 s s"]:
            own = torch.Generator().manual_seed(image_seed(plan.seed, epoch, number))
            return view.crop_one(source.image(number), own)

        parts = order(epoch)
        crops = in_threads(crop, (rows.tolist() for rows in parts), work.workers)
        for step, (rows, part) in enumerate(zip(parts, crops, strict=True)):
            yield rows, view.finish(part.to(device, non_blocking=True), generator(epoch, step))

    if not fits(source, budget=work.resident_bytes):
        return streamed
    try:
        pixels = decode_all(source, workers=work.workers).to(device)
    except DataError:  # images of several sizes
        return streamed
    return resident
