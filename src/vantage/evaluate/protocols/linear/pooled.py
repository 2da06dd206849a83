"""Linear classification on pooled features of a frozen backbone, as three published implementations do it.

How a learning rate is chosen among several: `vantage.evaluate.protocols.linear.side_by_side`.
"""

from dataclasses import dataclass
from typing import ClassVar

from vantage.data.sources.source import Source
from vantage.encoders.backbones.depths import Depth
from vantage.encoders.roles import PerView
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.protocols.linear.plan import LinearPlan, LinearTraining, normal_start, torch_start
from vantage.evaluate.protocols.linear.side_by_side import train_and_guess
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.measures.accuracy import accuracy
from vantage.views.augmentation import Augmentation
from vantage.views.operations.crops import RandomResizedCrop
from vantage.views.operations.flip import HorizontalFlip
from vantage.views.operations.operation import Operation

__all__ = ["LinearCMC", "LinearMoCo", "LinearPyContrast"]


@dataclass(frozen=True)
class LinearMoCo(LinearTraining):
    """Linear classification as MoCo's code does it (arXiv 1911.05722, §4.1).

    Pooled features, no BatchNorm, weights from N(0, .01²), biases 0; SGD with momentum .9 and no weight decay, the
    learning rate multiplied by .1 at epochs 60 and 80 of 100; random resized crop and flip in training, the center of
    the resized image in testing (`FrozenEncoder.view`: 224 of 256 at the paper's size, the whole image up to 96
    pixels). The backbone stays in evaluation mode, which is checked.

    The code's learning rate is 30, and JCL's on ImageNet-100 is 10. `learning_rates=(30.0,)` is the code's protocol,
    without a choice; the other rates are for features of another scale, such as those of small images.
    """

    name: ClassVar[str] = "linear-moco"
    version: ClassVar[int] = 1

    learning_rates: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    """Learning rates trained side by side, for a batch of 256. With one rate nothing is held out."""
    epochs: int = 100
    """Passes over the training images; the learning rate falls after 60 % and 80 % of them."""
    smallest_area: float = 0.08
    """Smallest share of the image that a crop covers."""

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, score on `test`."""
        milestones = (round(0.6 * self.epochs), round(0.8 * self.epochs))
        plan = self.plan(training_view(encoder, self.smallest_area), milestones, 0.1, normal_start)
        return on_features(plan, encoder, train, test, work)


@dataclass(frozen=True)
class LinearPyContrast(LinearTraining):
    """Linear classification as PyContrast's code does it, which InfoMin reports (arXiv 2005.10243).

    As `LinearMoCo`, but for 60 epochs, with the learning rate times .2 after epochs 30, 40 and 50, crops of at least
    .2 of the image, and torch's own initial weights.
    """

    name: ClassVar[str] = "linear-pycontrast"
    version: ClassVar[int] = 1

    learning_rates: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
    """Learning rates trained side by side, for a batch of 256; the code's is 30. With one rate nothing is held out."""
    epochs: int = 60
    """Passes over the training images; the learning rate falls after 3/6, 4/6 and 5/6 of them."""
    smallest_area: float = 0.2
    """Smallest share of the image that a crop covers."""

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, score on `test`."""
        view = training_view(encoder, self.smallest_area)
        return on_features(self.plan(view, sixths(self.epochs), 0.2, torch_start), encoder, train, test, work)


@dataclass(frozen=True)
class LinearCMC(LinearTraining):
    """Linear classification as CMC's code does it (arXiv 1906.05849): the features of both encoders, each on its
    channels, one after the other.

    As `LinearPyContrast`, but with weights from N(0, .01²) and biases 0. The code's learning rate is 30 for pooled
    features of a ResNet (50 for the widest one) and .1 for the fifth layer of an AlexNet. Raises `UserError` for a run
    with only one encoder, or a single encoder of several.
    """

    name: ClassVar[str] = "linear-cmc"
    version: ClassVar[int] = 1

    learning_rates: tuple[float, ...] = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 50.0)
    """Learning rates trained side by side, for a batch of 256; the code's is 30. With one rate nothing is held out."""
    epochs: int = 60
    """Passes over the training images; the learning rate falls after 3/6, 4/6 and 5/6 of them."""
    smallest_area: float = 0.2
    """Smallest share of the image that a crop covers."""

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Train on `train`, score on `test`."""
        encoders = encoder.run.encoders
        if not isinstance(encoders, PerView) or len(encoders.encoders) < 2:
            raise UserError(
                f"linear-cmc joins the features of one encoder per view, but this run ({encoder.run.recipe}) has one"
                " encoder for all views: use linear-moco or linear-pycontrast"
            )
        if encoder.choice is not None:
            raise UserError(
                "linear-cmc joins the features of all encoders of the run, but --network picks one: omit it, or use"
                " linear-moco for one alone"
            )
        view = training_view(encoder, self.smallest_area)
        return on_features(self.plan(view, sixths(self.epochs), 0.2, normal_start), encoder, train, test, work)


def sixths(epochs: int) -> tuple[int, ...]:
    """Half, two thirds and five sixths of the epochs."""
    return tuple(round(epochs * part / 6) for part in (3, 4, 5))


def training_view(encoder: FrozenEncoder, smallest_area: float, *changes: Operation) -> Augmentation:
    """Random crop and flip, then the given changes of color, then the operations of the evaluation view."""
    crop = RandomResizedCrop(encoder.view.size, (smallest_area, 1.0))
    return Augmentation(crop, (HorizontalFlip(0.5), *changes, *encoder.view.operations))


def on_features(plan: LinearPlan, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
    """Accuracy of classifiers on all features together, and how their learning rate was chosen."""
    guesses = train_and_guess(plan, (Depth("features", encoder.width, encoder.width),), encoder, train, test, work)
    choice: dict[str, float | int | str | list[float]] = {"learning_rate": guesses.learning_rate[0], "by": guesses.by}
    if guesses.held_out:
        choice |= {"learning_rates": list(plan.learning_rates), "held_out_accuracy": guesses.held_out[0]}
    measures = accuracy(guesses.guess[0], guesses.label, guesses.classes).measures()
    return Outcome(measures, guesses.train_images, len(guesses.label), choice, how=guesses.how)
