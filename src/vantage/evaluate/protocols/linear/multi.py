"""Linear classification at five depths of a frozen backbone, as InterCLR reports it for ImageNet and for Places205."""

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from torch import nn

from vantage.data.sources.source import Source
from vantage.encoders.backbones.depths import AtDepths, Depth
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.linear.depths import example_of
from vantage.evaluate.protocols.linear.heads import Descent
from vantage.evaluate.protocols.linear.plan import LinearTraining, TrainingView, normal_start
from vantage.evaluate.protocols.linear.pooled import training_view
from vantage.evaluate.protocols.linear.side_by_side import LinearGuesses, train_and_guess
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder, Pixels
from vantage.measures.accuracy import accuracy
from vantage.views.augmentation import Augmentation
from vantage.views.operations.color import ColorJitter
from vantage.views.operations.crops import SquareCrop
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.operations.lighting import Lighting

__all__ = ["LinearMulti", "LinearPlaces"]


@dataclass(frozen=True)
class _LinearAtDepths(LinearTraining):
    """Settings of classifiers at five depths, and how they are trained and reported."""

    learning_rates: tuple[float, ...] = (0.01,)
    """Learning rates trained side by side, for a batch of 256; the code's is .01. Among several, one is chosen for each
    depth on held-out images."""
    milestones: tuple[float, ...] = (0.3, 0.6, 0.9)
    """Shares of the epochs after which the learning rate is multiplied by .1."""
    weight_decay: float = 1e-4
    """L2 penalty on weights and biases."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if list(self.milestones) != sorted(self.milestones) or any(not 0 < share < 1 for share in self.milestones):
            raise UserError(
                f"linear evaluation: milestones are {self.milestones}; give increasing shares between 0 and 1"
            )
        if not self.weight_decay >= 0:
            raise UserError(f"linear evaluation: weight_decay is {self.weight_decay}; it must be 0 or more")

    def _outcome(self, view: TrainingView, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Classifiers of all depths, on training images seen through `view`."""
        depths = (Depth("pixels", encoder.width, len(encoder.view.channels)),)
        if not isinstance(encoder.backbone, Pixels):  # raw pixels have no depth
            backbone = AtDepths(encoder.backbone, example_of(encoder)).eval()
            encoder, depths = replace(encoder, backbone=backbone), backbone.depths
        descent = Descent(0.9, self.weight_decay, nesterov=True)
        milestones = tuple(round(share * self.epochs) for share in self.milestones)
        plan = self.plan(view, milestones, 0.1, normal_start, descent, partial(nn.BatchNorm1d, affine=False))
        return _outcome_of(train_and_guess(plan, depths, encoder, train, test, work), depths, self.learning_rates)


@dataclass(frozen=True)
class LinearMulti(_LinearAtDepths):
    """Linear classification at five depths, as InterCLR reports it (arXiv 2008.11702, appendix B) and OpenSelfSup's
    code does it.

    The outputs of the first convolution and of the four stages are averaged to a grid (12, 6, 4, 3 and 2 rows and
    columns: 9216, 9216, 8192, 9216 and 8192 numbers for ResNet-50 at 224 pixels) and pass through a BatchNorm without
    scale and shift to a classifier each, with weights from N(0, .01²) and biases 0. SGD with Nesterov's momentum .9,
    weight decay 1e-4 and learning rate .01, times .1 after epochs 30, 60 and 90 of 100. Training images are cropped,
    flipped, jittered (brightness, contrast and saturation by .4) and lit (`Lighting`).

    All depths are reported; raw pixels have one. The first number is that of the depth with the best accuracy on
    held-out training images; papers report the depth that is best on the test images, which is also reported, under
    that name. The paper's protocol for Places205 is `LinearPlaces`.

    Raises `UserError` for a backbone that gives no feature maps.
    """

    name: ClassVar[str] = "linear-multi"
    version: ClassVar[int] = 1

    epochs: int = 100
    """Passes over the training images (OpenSelfSup's code: 90)."""
    smallest_area: float = 0.08
    """Smallest share of the image that a crop covers."""

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, score on `test`."""
        view = training_view(encoder, self.smallest_area, ColorJitter(0.4, 0.4, 0.4, 0.0), Lighting(0.1))
        return self._outcome(view, encoder, train, test, work)


@dataclass(frozen=True)
class LinearPlaces(_LinearAtDepths):
    """Linear classification at five depths with InterCLR's crops and schedule for Places205 (arXiv 2008.11702, appendix
    B), as in OpenSelfSup's code.

    As `LinearMulti`, but for 28 epochs, with the learning rate times .1 after 7, 14 and 21 of them, and with other
    training images: the shorter side is resized, the center square cut out, a smaller square cut out of that at random
    (224 of 256 pixels), and flipped; colors stay as they are. For views of another size the squares keep that ratio.

    Raises `UserError` for a backbone that gives no feature maps.
    """

    name: ClassVar[str] = "linear-places"
    version: ClassVar[int] = 1

    epochs: int = 28
    """Passes over the training images."""
    milestones: tuple[float, ...] = (0.25, 0.5, 0.75)
    """Shares of the epochs after which the learning rate is multiplied by .1."""
    crop: float = 0.875
    """Side of a crop, as a share of the center square that it is cut out of: 224 of 256 pixels."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.crop <= 1:
            raise UserError(f"linear evaluation: crop is {self.crop}; give a share above 0 and up to 1")

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, score on `test`."""
        size = encoder.view.size
        crop = SquareCrop(size, max(size, round(size / self.crop)))
        view = Augmentation(crop, (HorizontalFlip(0.5), *encoder.view.operations))
        return self._outcome(view, encoder, train, test, work)


def _outcome_of(guesses: LinearGuesses, depths: tuple[Depth, ...], learning_rates: tuple[float, ...]) -> Outcome:
    """All depths, with the best on held-out images first (the deepest, if several tie)."""
    accuracies = [accuracy(guess, guesses.label, guesses.classes) for guess in guesses.guess]
    names = [depth.name for depth in depths]
    accuracy_of_depth = [max(of_depth) for of_depth in guesses.held_out] or [0.0]
    best = max(range(len(accuracy_of_depth)), key=lambda number: (accuracy_of_depth[number], number))
    measures = accuracies[best].measures() | {
        f"{name} top-1": one.top1 for name, one in zip(names, accuracies, strict=True)
    }
    measures["best on the test images top-1"] = max(one.top1 for one in accuracies)
    choice: dict[str, float | int | str | list[float]] = {
        "depth": names[best],
        "learning_rate": guesses.learning_rate[best],
        "by": guesses.by,
        "held_out_accuracy": accuracy_of_depth,
    }
    details = {
        "depths": [depth._asdict() for depth in depths],
        "learning_rates": list(learning_rates),
        "learning rate of each depth": list(guesses.learning_rate),
        "held_out_accuracy by depth and learning rate": [list(of_depth) for of_depth in guesses.held_out],
        "top-5 of each depth": [one.top5 for one in accuracies],
    }
    return Outcome(measures, guesses.train_images, len(guesses.label), choice, details, guesses.how)
