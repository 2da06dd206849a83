"""Three tasks on single frames: which digit, which background, and where the digit is.

n: frames   o: outputs for a task   w: axes of one right answer
"""

from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Float, Num
from torch import Tensor
from torch.nn.functional import cross_entropy, mse_loss

from vantage.studies.moving_mnist.clips import Clips
from vantage.studies.moving_mnist.factors import Factors

__all__ = ["TASKS", "BackgroundClass", "DigitClass", "Location", "FrameTask"]


@runtime_checkable
class FrameTask(Protocol):
    """A question about a frame that a linear layer answers from its features."""

    name: ClassVar[str]
    """Its name in tables."""

    def outputs(self, clips: Clips) -> int:
        """Number of outputs of the linear layer."""
        ...

    def answer(self, factors: Factors, clips: Clips) -> Num[Tensor, "n *w"]:
        """The right answer for each frame."""
        ...

    def loss(self, output: Float[Tensor, "n o"], answer: Num[Tensor, "n *w"]) -> Float[Tensor, ""]:
        """The training loss, averaged over the frames."""
        ...

    def errors(self, output: Float[Tensor, "n o"], answer: Num[Tensor, "n *w"], clips: Clips) -> Float[Tensor, "n"]:
        """The error of each answer; the measure is the mean over frames."""
        ...


class _Classification:
    def loss(self, output: Float[Tensor, "n o"], answer: Num[Tensor, "n"]) -> Float[Tensor, ""]:
        """Cross-entropy."""
        return cross_entropy(output, answer)

    def errors(self, output: Float[Tensor, "n o"], answer: Num[Tensor, "n"], clips: Clips) -> Float[Tensor, "n"]:
        """100 for a wrong class, else 0."""
        return 100.0 * (output.argmax(1) != answer).float()


@dataclass(frozen=True)
class DigitClass(_Classification):
    """The class of the digit."""

    name: ClassVar[str] = "digit"

    def outputs(self, clips: Clips) -> int:
        """One per class."""
        return len(clips.digits.classes)

    def answer(self, factors: Factors, clips: Clips) -> Num[Tensor, "n"]:
        """The label of the digit's image."""
        label = clips.digits.label
        return label[factors.digit.to(label.device)]


@dataclass(frozen=True)
class BackgroundClass(_Classification):
    """The class of the background."""

    name: ClassVar[str] = "background"

    def outputs(self, clips: Clips) -> int:
        """One per class."""
        return len(clips.backgrounds.classes)

    def answer(self, factors: Factors, clips: Clips) -> Num[Tensor, "n"]:
        """The label of the background's image."""
        label = clips.backgrounds.label
        return label[factors.background.to(label.device)]


@dataclass(frozen=True)
class Location:
    """The position of the digit. We take the paper's "error pixels" as the mean Euclidean distance: always answering
    the center then gives 13.77 pixels, which agrees with the failing rows of Table 4 (13.6 to 16.3)."""

    name: ClassVar[str] = "location"

    def outputs(self, clips: Clips) -> int:
        """x and y."""
        return 2

    def answer(self, factors: Factors, clips: Clips) -> Num[Tensor, "n 2"]:
        """The digit's corner, rounded as it is drawn, and scaled to −1 … 1 over its range."""
        half = clips.room / 2
        return ((factors.place.round() - half) / max(half, 0.5)).float().to(clips.digits.pixels.device)

    def loss(self, output: Float[Tensor, "n 2"], answer: Num[Tensor, "n 2"]) -> Float[Tensor, ""]:
        """Mean squared error."""
        return mse_loss(output, answer)

    def errors(self, output: Float[Tensor, "n 2"], answer: Num[Tensor, "n 2"], clips: Clips) -> Float[Tensor, "n"]:
        """Euclidean distance in pixels."""
        return (output - answer).norm(dim=1) * max(clips.room / 2, 0.5)


TASKS: tuple[FrameTask, ...] = (DigitClass(), BackgroundClass(), Location())
"""The three tasks, in the order of Table 4's columns."""
