"""Three tasks on single frames: which digit, which background, and where the digit is.

n: frames   f: features of a frame   o: numbers that a task is answered with   w: those of one right answer
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
    """A question about a frame, answered by a linear layer over its features."""

    name: ClassVar[str]
    """Its name in tables."""

    def outputs(self, clips: Clips) -> int:
        """Numbers that the task is answered with."""
        ...

    def answer(self, factors: Factors, clips: Clips) -> Num[Tensor, "n *w"]:
        """What is right about each frame."""
        ...

    def loss(self, output: Float[Tensor, "n o"], answer: Num[Tensor, "n *w"]) -> Float[Tensor, ""]:
        """What is minimized, mean over the frames."""
        ...

    def errors(self, output: Float[Tensor, "n o"], answer: Num[Tensor, "n *w"], clips: Clips) -> Float[Tensor, "n"]:
        """How wrong each answer is; the mean over frames is the measure."""
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
        """One for each class."""
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
        """One for each class."""
        return len(clips.backgrounds.classes)

    def answer(self, factors: Factors, clips: Clips) -> Num[Tensor, "n"]:
        """The label of the background's image."""
        label = clips.backgrounds.label
        return label[factors.background.to(label.device)]


@dataclass(frozen=True)
class Location:
    """Where the digit is. The paper's "error pixels" are taken to be the mean Euclidean distance: always to name the
    middle is then wrong by 13.77 pixels, which the rows that fail in Table 4 (13.6 to 16.3) agree with."""

    name: ClassVar[str] = "location"

    def outputs(self, clips: Clips) -> int:
        """x and y."""
        return 2

    def answer(self, factors: Factors, clips: Clips) -> Num[Tensor, "n 2"]:
        """The drawn corner, from −1 to 1 over all that it may be."""
        half = clips.room / 2
        return ((factors.place.round() - half) / max(half, 0.5)).float().to(clips.digits.pixels.device)

    def loss(self, output: Float[Tensor, "n 2"], answer: Num[Tensor, "n 2"]) -> Float[Tensor, ""]:
        """Mean square."""
        return mse_loss(output, answer)

    def errors(self, output: Float[Tensor, "n 2"], answer: Num[Tensor, "n 2"], clips: Clips) -> Float[Tensor, "n"]:
        """Euclidean distance in pixels."""
        return (output - answer).norm(dim=1) * max(clips.room / 2, 0.5)


TASKS: tuple[FrameTask, ...] = (DigitClass(), BackgroundClass(), Location())
"""The three tasks, in the order of Table 4's columns."""
