"""The configuration of view learning, and its checks.

This part of InfoMin (Tian et al., arXiv 2005.10243, section 4.2 and appendix B.5) was never released. Values that the
paper states are marked as such; every other value is our interpretation, and a setting.
"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from vantage.composition.fitting import smaller_batch
from vantage.errors import UserError
from vantage.studies.view_learning.scaling import Standardization, Unchanged
from vantage.studies.view_learning.terms import Term
from vantage.training.run import Data
from vantage.views.augmentation import Augmentation
from vantage.views.colors.flows import Flow
from vantage.views.colors.learned import ONE_AND_TWO, LearnedSpace, PairOfViews
from vantage.views.colors.spaces import RGB, ColorSpace, InSpace

__all__ = ["PRINTED", "SWAPPED", "Alternately", "Jointly", "LearnedViews", "Rates", "Updates", "ViewLearning"]


@dataclass(frozen=True)
class Rates:
    """Learning rates and other settings of Adam."""

    generator: float = 2e-4
    """Rate of the flow g (appendix B.5, as printed)."""

    critics: float = 6e-4
    """Rate of the critics f₁ and f₂ (appendix B.5, as printed)."""

    classifiers: float = 6e-4
    """Rate of the classifiers c₁ and c₂; not stated."""

    betas: tuple[float, float] = (0.5, 0.999)
    """Adam's decay rates; not stated. These are common in adversarial training."""

    def __post_init__(self) -> None:
        if not min(self.generator, self.critics, self.classifiers) > 0:
            raise UserError(f"learning rates {self.generator}, {self.critics} and {self.classifiers}: give all above 0")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise UserError(f"betas of Adam are {self.betas}: give two numbers from 0 to below 1")


PRINTED = Rates()
"""The values of appendix B.5, although its text says that the generator's rate should be the larger one."""

SWAPPED = Rates(generator=6e-4, critics=2e-4, classifiers=2e-4)
"""The same values in the order of the text: the generator's rate is the larger one."""


@runtime_checkable
class Updates(Protocol):
    """How the two sides of the game take turns."""

    @property
    def critic_steps(self) -> int:
        """Separate critic steps before each step of g; 0 means that critics and g move in the same step."""
        ...


@dataclass(frozen=True)
class Alternately:
    """First the critics step, on fixed views; then g (and the classifiers) step against fixed critics."""

    critic_steps: int = 1
    """Steps of the critics per step of g."""

    def __post_init__(self) -> None:
        if self.critic_steps < 1:
            raise UserError(f"critic_steps is {self.critic_steps}: give at least 1, or take `Jointly`")


@dataclass(frozen=True)
class Jointly:
    """All in one step, by one gradient that is negated for the critics: half the work."""

    @property
    def critic_steps(self) -> int:
        """No separate steps."""
        return 0


@dataclass(frozen=True)
class ViewLearning:
    """How views are learned: min over g (and classifiers) max over critics of the sum of the terms.

    `view_learning.unsupervised(size)` and its siblings return one; use `dataclasses.replace` for variants.
    """

    name: str
    """Its name in reports."""

    terms: tuple[Term, ...]
    """The terms of the sum: Eq. 2 is `SharedInformation`; Eq. 3 adds `LabelInformation`."""

    crop: Augmentation
    """View of the images, as colors from 0 to 1: crop and flip, without color changes."""

    space: ColorSpace = RGB()
    """Color space of the flow's input, normalized by its statistics: RGB or YDbDr in the paper, or any other."""

    flow: Flow = Flow()
    """The generator g, whose couplings preserve the volume (VP) or do not (NVP)."""

    channels: PairOfViews = ONE_AND_TWO
    """Channels of ĝ(X) in each of the two views: the first, and the others (as stated)."""

    scaling: Standardization = Unchanged()
    """Scaling of ĝ(X) before the critics and classifiers."""

    learning_rates: Rates = PRINTED
    """Learning rates, and the other settings of Adam."""

    updates: Updates = Alternately()
    """How critics and generator take turns: 1 to 1."""

    epochs: int = 100
    """Passes over all images, or over the labeled ones if no term uses all images. Not stated."""

    batch_size: int = 128
    """Images per step. Not stated."""

    labeled_batch_size: int = 128
    """Labeled images per step, if a term needs labels; fewer if there are not enough. Not stated."""

    labels: int = 0
    """Number of images whose labels are used, equally many from each class; 0: all labels."""

    validation: float = 0.1
    """Share of each class that no network is trained on; the best state has the smallest sum of terms on it."""

    best_after: float = 0.5
    """Share of the epochs during which no state counts as the best yet: untrained critics find no information."""

    seed: int = 0
    """Seed; all random numbers are a function of it and of the step."""

    data: Data = field(default_factory=Data)
    """Where the images come from."""

    device: str = "auto"
    """Device, such as cpu or cuda:0; auto uses an accelerator if there is one. Arithmetic is float32."""

    def __post_init__(self) -> None:
        if not self.terms:
            raise UserError("views are learned by the terms of an objective: give at least one")
        for name, least in (("epochs", 1), ("labeled_batch_size", 2)):
            if getattr(self, name) < least:
                raise UserError(f"{name} is {getattr(self, name)}: give at least {least}")
        if self.batch_size < 2:
            raise UserError(
                f"batch_size is {self.batch_size}: each image is compared with the others, so give at least 2"
            )
        if self.labels < 0:
            raise UserError(f"labels is {self.labels}: give how many images' labels are used, or 0 for all")
        if not 0 < self.validation < 1 or not 0 <= self.best_after < 1:
            raise UserError(
                f"validation is {self.validation} and best_after {self.best_after}: give shares below 1, the first"
                " above 0"
            )
        if any(not part or not set(part) <= {0, 1, 2} for part in self.channels):
            raise UserError(f"channels is {self.channels}: give both views some of the channels 0, 1 and 2")

    def fit(self, images: int) -> "ViewLearning":
        """This learning, or if it has fewer training images than a batch, with a batch that is halved until an epoch
        has at least 8 steps, or 8 images, as `Run.fit` does. With enough images, the batch stays."""
        return self if images >= self.batch_size else replace(self, batch_size=smaller_batch(self.batch_size, images))

    @property
    def view(self) -> Augmentation:
        """The view that makes the flow's input channels."""
        normalize = self.space.statistics.normalize()
        return Augmentation(self.crop.crop, (*self.crop.operations, InSpace(self.space), normalize))


@dataclass(frozen=True)
class LearnedViews:
    """The outcome of learning views."""

    folder: Path
    """Folder with everything that was written."""

    step: int
    """Steps taken."""

    finished: bool
    """Whether all epochs are done; if not, a signal stopped it, and another call resumes it."""

    last: LearnedSpace | None
    """The color space of the last state; None if no epoch was finished."""

    best: LearnedSpace | None
    """The color space of the epoch with the smallest sum of terms on the held-out images, late in the learning."""
