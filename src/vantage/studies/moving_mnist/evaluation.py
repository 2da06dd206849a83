"""Linear heads on a frozen frame network, and networks trained end to end on one task: a fixed protocol.

Nothing is chosen by the results: there is one learning rate, and the last epoch counts. Features are standardized with
the mean and deviation of the training frames, so that one rate suits every network.

n: frames   b: frames of a step   f: features of a frame   o: outputs for a task
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int, Num
from torch import Tensor, nn

from vantage import draws
from vantage.studies.moving_mnist.clips import Clips, normalize_pixels
from vantage.studies.moving_mnist.factors import Factors
from vantage.studies.moving_mnist.networks import FrameEncoder, FrameNetwork
from vantage.studies.moving_mnist.tasks import TASKS, FrameTask
from vantage.studies.moving_mnist.training import ClipTraining, OnStep

__all__ = ["LinearHeads", "SupervisedTraining", "frame_features"]

_PART = 500  # frames that the network encodes at once


@torch.no_grad()
def frame_features(network: nn.Module, clips: Clips, most: int = 0) -> tuple[Float[Tensor, "n f"], Factors]:
    """A network's features (in evaluation mode) of the last frame of the first `most` clips (0: all clips), and the
    factors of these frames."""
    network.eval()
    vectors, factors = [], []
    for number in torch.arange(min(len(clips), most or len(clips))).split(_PART):
        frames, frame_factors = clips.frames(0, number)
        vectors.append(network(normalize_pixels(frames)))
        factors.append(frame_factors)
    return torch.cat(vectors), Factors.concatenate(factors)


@dataclass(frozen=True)
class LinearHeads:
    """A linear layer for each task on frozen features of one frame per digit, all trained together.

    The training settings are those of the networks, for 100 epochs; the paper states neither (our choices).
    """

    course: ClipTraining = field(default_factory=lambda: ClipTraining(epochs=100))
    """Epochs, batches and learning rates."""

    frames: int = 0
    """Number of training frames, whose features are computed once; 0 means one per digit."""

    def measure(
        self,
        network: FrameNetwork,
        train: Clips,
        test: Clips,
        seed: int,
        on_step: OnStep,
        tasks: Sequence[FrameTask] = TASKS,
        test_frames: int = 0,
    ) -> dict[str, float]:
        """Mean error of each task over the test frames, by the task's name."""
        features, factors = frame_features(network, train, self.frames)
        mean, deviation = features.mean(0), features.std(0, correction=0)
        scale = torch.where(deviation > 1e-6, deviation, 1.0)  # a constant feature stays 0
        vector = (features - mean) / scale
        answers = [task.answer(factors, train) for task in tasks]
        head = _layer(features.shape[1], sum(task.outputs(train) for task in tasks), seed).to(features.device)

        def loss(_: int, number: Int[Tensor, "b"]) -> Float[Tensor, ""]:
            row = number.to(vector.device)
            # The layers share no parameters, so the sum trains each one as if it were alone.
            return _sum(tasks, head(vector[row]), [answer[row] for answer in answers], train)

        self.course.train(head, len(vector), seed, loss, on_step)
        test_features, factors = frame_features(network, test, test_frames)
        with torch.no_grad():
            return _errors(tasks, head((test_features - mean) / scale), factors, test)


@dataclass(frozen=True)
class SupervisedTraining:
    """The frame network and a linear layer, trained end to end on one task, with new frames in every epoch."""

    encoder: FrameEncoder = FrameEncoder()
    """The network."""

    course: ClipTraining = ClipTraining()
    """Epochs, batches and learning rates."""

    def measure(
        self, train: Clips, test: Clips, task: FrameTask, seed: int, on_step: OnStep, test_frames: int = 0
    ) -> dict[str, float]:
        """Mean error of the task over the test frames, by the task's name."""
        with draws.torch_seed(seed):
            frame = self.encoder.build()
        network = nn.Sequential(frame, _layer(self.encoder.width, task.outputs(train), seed))
        network.to(train.digits.pixels.device)

        def loss(epoch: int, number: Int[Tensor, "b"]) -> Float[Tensor, ""]:
            frames, factors = train.frames(epoch, number)
            return task.loss(network(normalize_pixels(frames)), task.answer(factors, train))

        self.course.train(network, len(train), seed, loss, on_step)
        answers, factors = frame_features(network, test, test_frames)
        return _errors((task,), answers, factors, test)


def _layer(features: int, outputs: int, seed: int) -> nn.Linear:
    with draws.torch_seed(seed):
        return nn.Linear(features, outputs)


def _split(tasks: Sequence[FrameTask], outputs: Float[Tensor, "n o"], clips: Clips) -> Sequence[Float[Tensor, "n _"]]:
    return outputs.split([task.outputs(clips) for task in tasks], 1)


def _sum(
    tasks: Sequence[FrameTask], outputs: Float[Tensor, "n o"], answers: Sequence[Num[Tensor, "n ..."]], clips: Clips
) -> Float[Tensor, ""]:
    parts = zip(tasks, _split(tasks, outputs, clips), answers, strict=True)
    return torch.stack([task.loss(part, answer) for task, part, answer in parts]).sum()


def _errors(
    tasks: Sequence[FrameTask], outputs: Float[Tensor, "n o"], factors: Factors, clips: Clips
) -> dict[str, float]:
    parts = zip(tasks, _split(tasks, outputs, clips), strict=True)
    return {task.name: float(task.errors(part, task.answer(factors, clips), clips).mean()) for task, part in parts}
