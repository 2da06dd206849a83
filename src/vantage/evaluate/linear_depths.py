"""Linear classification on what a frozen backbone sees before its pooling: at the deepest map, or at five depths.

b: images   c: channels   s: side of a view in pixels
"""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor, nn

from vantage.data.source import Source
from vantage.embedding import Work, in_threads
from vantage.encoders.depths import AtDepth, AtDepths, Depth
from vantage.errors import UserError
from vantage.evaluate.accuracy import accuracy
from vantage.evaluate.heads import Descent
from vantage.evaluate.labelled import with_labels
from vantage.evaluate.linear import on_features, training_view
from vantage.evaluate.linear_plan import Plan, normal_start, torch_start
from vantage.evaluate.outcome import Outcome
from vantage.evaluate.side_by_side import Verdict, check_settings, judge
from vantage.trained import Pixels, Trained
from vantage.views.colour import ColourJitter
from vantage.views.evaluation import Evaluation, Straight
from vantage.views.lighting import Lighting
from vantage.views.statistics import Statistics

__all__ = ["LinearMulti", "LinearRing", "statistics_of"]

_MOST = 10_000
"""Images that tell mean and deviation of a set."""


@dataclass(frozen=True)
class LinearRing:
    """Linear classification as Ring reports it (arXiv 2010.02037, §5): on the deepest map
    before the pooling, flattened (512 x 7 x 7 for ResNet-18 at 224 pixels).

    SGD with momentum .9, no weight decay, rate .01 that never falls; pixels are normalised by mean and standard
    deviation of the training images themselves (of 10,000 spread evenly over them, where there are more). Of a run with
    several encoders the maps of all are taken. The paper does not tell how images are cropped in this training: here
    by random resized crops of at least .2 of the image, as in its pre-training, and flips. The released code puts
    BatchNorm back into training mode meanwhile; here the backbone stays as it is, which is checked.

    Raises `UserError` for a backbone that shows no maps.
    """

    name: ClassVar[str] = "linear-ring"
    version: ClassVar[int] = 1

    rates: tuple[float, ...] = (0.01,)
    """Learning rates trained side by side, for a batch of 256; the paper's is .01. With one rate nothing is held out,
    of several a tenth of the training images chooses."""
    epochs: int = 100
    """Passes over the training images."""
    batch: int = 256
    """Images of a step; rates are not scaled by it."""
    smallest_area: float = 0.2
    """Least share of the image that a crop takes."""
    seed: int = 0
    """Of the order, the crops, the initial weights and the images held out."""

    def __post_init__(self) -> None:
        check_settings(self.rates, self.epochs, self.batch)

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`."""
        statistics = statistics_of(trained, train, work)
        seen = replace(trained, view=_normalised(trained.view, statistics))
        if not isinstance(trained.backbone, Pixels):  # which have no depth
            seen = replace(seen, backbone=AtDepth(trained.backbone, -1, nn.Identity(), _example(trained)).eval())
        crops = training_view(seen, self.smallest_area)
        plan = Plan(self.rates, self.epochs, self.batch, crops, self.seed, (), 1.0, torch_start)
        found = on_features(plan, seen, train, test, work)
        told = {"mean": list(statistics.mean), "std": list(statistics.std), "features": seen.width}
        return replace(found, details=told)


@dataclass(frozen=True)
class LinearMulti:
    """Linear classification at five depths, as InterCLR reports it (arXiv 2008.11702, appendix A) and OpenSelfSup's
    code does it.

    The first convolution and the four stages, each averaged to a grid (12, 6, 4, 3 and 2 rows and columns: 9216, 9216,
    8192, 9216 and 8192 numbers for ResNet-50 at 224 pixels), through a BatchNorm without scale and shift, to a
    classifier of its own, weights from N(0, .01²), biases 0. SGD with Nesterov's momentum .9, weight decay 1e-4, rate
    .01, times .1 after epochs 30, 60 and 90 of 100. Training images are cropped, flipped, jittered (brightness,
    contrast and saturation by .4) and lit (`Lighting`).

    All depths are reported; raw pixels have one. The first number is that of the depth with the best accuracy on
    training images held out of other classifiers; papers report the depth that is best on the test images, which is
    reported too and called so.
    Places205 in the paper: 28 epochs, falls .25, .5 and .75, and other crops, which are not here.

    Raises `UserError` for a backbone that shows no maps.
    """

    name: ClassVar[str] = "linear-multi"
    version: ClassVar[int] = 1

    rates: tuple[float, ...] = (0.01,)
    """Learning rates trained side by side, for a batch of 256; the code's is .01. Of several, the images held out
    choose one for each depth."""
    epochs: int = 100
    """Passes over the training images (OpenSelfSup's code: 90)."""
    falls: tuple[float, ...] = (0.3, 0.6, 0.9)
    """Shares of the epochs after which the rate is multiplied with .1."""
    batch: int = 256
    """Images of a step; rates are not scaled by it."""
    weight_decay: float = 1e-4
    """L2 penalty of weights and biases."""
    smallest_area: float = 0.08
    """Least share of the image that a crop takes."""
    seed: int = 0
    """Of the order, the crops, the initial weights and the images held out."""

    def __post_init__(self) -> None:
        check_settings(self.rates, self.epochs, self.batch)
        if list(self.falls) != sorted(self.falls) or any(not 0 < fall < 1 for fall in self.falls):
            raise UserError(f"linear evaluation: falls are {self.falls}; give rising shares between 0 and 1")
        if not self.weight_decay >= 0:
            raise UserError(f"linear evaluation: weight_decay is {self.weight_decay}; it must be 0 or more")

    def __call__(self, trained: Trained, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, count on `test`."""
        seen, depths = trained, (Depth("pixels", trained.width, len(trained.view.channels)),)
        if not isinstance(trained.backbone, Pixels):  # which have no depth
            backbone = AtDepths(trained.backbone, _example(trained)).eval()
            seen, depths = replace(trained, backbone=backbone), backbone.depths
        crops = training_view(seen, self.smallest_area, ColourJitter(0.4, 0.4, 0.4, 0.0), Lighting(0.1))
        falls = tuple(round(share * self.epochs) for share in self.falls)
        plan = Plan(
            self.rates, self.epochs, self.batch, crops, self.seed, falls, 0.1, normal_start,
            Descent(0.9, self.weight_decay, nesterov=True), partial(nn.BatchNorm1d, affine=False),
        )  # fmt: skip
        return _told(judge(plan, depths, seen, train, test, work), depths, self.rates)


def _told(found: Verdict, depths: tuple[Depth, ...], rates: tuple[float, ...]) -> Outcome:
    """All depths, and first the one that the images held out choose (of equal ones the deepest)."""
    each = [accuracy(guess, found.label, found.classes) for guess in found.guess]
    names = [depth.name for depth in depths]
    known = [max(accuracies) for accuracies in found.held_out] or [0.0]
    best = max(range(len(known)), key=lambda number: (known[number], number))
    measures = each[best].measures() | {f"{name} top-1": one.top1 for name, one in zip(names, each, strict=True)}
    measures["best on the test images top-1"] = max(one.top1 for one in each)
    chosen: dict[str, float | int | str | list[float]] = {
        "depth": names[best], "rate": found.rate[best], "by": found.by, "held_out_accuracy": known
    }  # fmt: skip
    details = {
        "depths": [depth._asdict() for depth in depths],
        "rates": list(rates),
        "rate of each depth": list(found.rate),
        "held_out_accuracy by depth and rate": [list(accuracies) for accuracies in found.held_out],
        "top-5 of each depth": [one.top5 for one in each],
    }
    return Outcome(measures, found.train_images, len(found.label), chosen, details, found.how)


def _example(trained: Trained) -> Float[Tensor, "1 c s s"]:
    """An image of the shape that the encoder sees, where its parameters are."""
    place = next((value.device for value in trained.backbone.state_dict().values()), torch.device("cpu"))
    side = trained.view.size
    return torch.zeros(1, len(trained.view.channels), side, side, device=place)


def _normalised(
    view: Evaluation | Straight, statistics: Statistics, channels: tuple[int, ...] | None = None
) -> Evaluation | Straight:
    """The same view with other statistics, and all channels where they are given."""
    if isinstance(view, Straight):
        return replace(view, seen=_normalised(view.seen, statistics, channels))
    return replace(view, statistics=statistics, channels=view.channels if channels is None else channels)


def statistics_of(trained: Trained, source: Source, work: Work) -> Statistics:
    """Mean and standard deviation of each channel of the labelled images, cropped and converted as in testing; of
    10,000 of them, spread evenly, where there are more."""
    source, _ = with_labels(source)
    count = min(len(source), _MOST)
    numbers = [number * len(source) // count for number in range(count)]
    parts = (numbers[start : start + work.batch] for start in range(0, count, work.batch))
    plain = _normalised(trained.view, Statistics((0.0, 0.0, 0.0), (1.0, 1.0, 1.0)), (0, 1, 2))
    total, squares, pixels = torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64), 0
    for crops in in_threads(lambda number: plain.crop(source.image(number)), parts, work.workers):
        values = plain.finish(crops).double()
        total += values.sum((0, 2, 3))
        squares += values.square().sum((0, 2, 3))
        pixels += values[:, 0].numel()
    mean = total / pixels
    deviation = (squares / pixels - mean.square()).clamp(min=1e-12).sqrt()
    if bool((deviation < 1e-5).any()):
        raise UserError("a channel of the training images never changes, so images cannot be normalised by it")
    red, green, blue = mean.tolist()
    first, second, third = deviation.tolist()
    return Statistics((red, green, blue), (first, second, third))
