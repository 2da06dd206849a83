"""Numbers about a view learning: means over an epoch, the objective on held-out images, and channel statistics."""

import itertools
from collections.abc import Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.studies.view_learning.game import Players
from vantage.studies.view_learning.images import LearningImages, Stream
from vantage.views.colors.flows import FlowNetwork
from vantage.views.colors.statistics import Statistics

__all__ = ["Means", "evaluate_held_out", "measure_statistics"]

_WORDS = {"i_nce": "I_NCE", "log_det": "log determinant"}
"""Numbers whose names are not words."""


class Means:
    """Means of the numbers that steps report; saved, so that a resumed epoch ends with the same means."""

    def __init__(self) -> None:
        self.steps, self.sums = 0, dict[str, float]()

    def add(self, numbers: Mapping[str, Float[Tensor, ""]]) -> None:
        """Add the numbers of one step."""
        self.steps += 1
        for name, value in numbers.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)

    def values(self) -> dict[str, float]:
        """The means so far."""
        return {name: total / max(1, self.steps) for name, total in self.sums.items()}

    def line(self) -> str:
        """The means so far, as text."""
        return "  ".join(
            f"{_WORDS.get(name, name.replace('_', ' '))} {value:.3f}" for name, value in self.values().items()
        )

    def state(self) -> dict[str, Any]:
        """State for a checkpoint."""
        return {"steps": self.steps, "sums": self.sums}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> "Means":
        """The inverse of `state`."""
        means = cls()
        means.steps, means.sums = int(state["steps"]), {name: float(value) for name, value in state["sums"].items()}
        return means


@torch.no_grad()
def evaluate_held_out(players: Players, images: LearningImages) -> dict[str, float]:
    """The objective and its numbers on the held-out images, always with the same crops; names begin with `held_out.`.

    The critics were trained on the other images, so this is a lower bound of Eq. 2's inner maximum.
    """
    players.eval()
    every, objective = Means(), 0.0
    for of_labels, stream in ((False, images.held_out), (True, images.held_out_labeled)):
        terms = [term for term in players.each_term() if term.labeled == of_labels]
        if not terms or stream is None:
            continue
        means = Means()
        for batch in _one_pass(stream):
            one, two, _ = players.views(batch.images)
            for term in terms:
                value, numbers = term(one, two, batch.label if of_labels else None)
                means.add({"objective": term.weight * value, **numbers})
            means.steps -= len(terms) - 1  # all terms of a batch count as one step
        objective += means.values()["objective"]
        every.sums |= {name: value for name, value in means.values().items() if name != "objective"}
    every.steps = 1
    return {f"held_out.{name}": value for name, value in {"objective": objective, **every.values()}.items()}


@torch.no_grad()
def measure_statistics(flow: FlowNetwork, images: LearningImages) -> Statistics:
    """Mean and standard deviation of each output channel of the flow, on about a thousand training images."""
    count, total, squares = 0, torch.zeros(3, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    for channels in images.channels():
        pixels = flow(channels)[0].movedim(1, 0).flatten(1).double().cpu()
        count += pixels.shape[1]
        total, squares = total + pixels.sum(1), squares + pixels.square().sum(1)
    mean = total / count
    deviation = (squares / count - mean.square()).clamp(min=1e-12).sqrt()
    first, second = mean.tolist(), deviation.tolist()
    return Statistics((first[0], first[1], first[2]), (second[0], second[1], second[2]))


def _one_pass(stream: Stream) -> Any:
    """Each batch of one pass over the images."""
    return itertools.islice(stream.batches(), stream.steps)
