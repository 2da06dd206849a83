"""What one forward pass passes on, and how the accumulated parts of a batch count.

b: images here   w: processes   k: branches   d: width
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import processes
from vantage.branch import Branch
from vantage.records import Keys

__all__ = [
    "Fresh",
    "GatheredKeys",
    "Step",
    "StepKeys",
    "StepSeeds",
    "Watched",
    "joint_keys",
    "joint_loss",
    "mean_of_parts",
]


class GatheredKeys(NamedTuple):
    """The keys of one step, gathered from all processes, with their gradient: what the loss compares queries with."""

    vectors: dict[int, Float[Tensor, "w_b d"]]
    """Unit vectors by view."""

    image: Int[Tensor, "w_b"]
    """Numbers of their images."""

    def keys(self, branch: Branch) -> Keys:
        """The keys that a branch remembers."""
        return branch.remember(tuple(Keys(self.vectors[view], self.image) for view in branch.pool_views))

    @property
    def own(self) -> dict[int, Float[Tensor, "b d"]]:
        """The vectors of this process's images."""
        return {view: processes.own_rows(vector) for view, vector in self.vectors.items()}

    def parts(self, count: int) -> "list[GatheredKeys]":
        """Those of each of `count` accumulated parts."""
        vectors = {view: each.chunk(count) for view, each in self.vectors.items()}
        images = enumerate(self.image.chunk(count))
        return [GatheredKeys({view: each[n] for view, each in vectors.items()}, image) for n, image in images]


class StepKeys(NamedTuple):
    """The keys of a loss."""

    own: dict[int, Float[Tensor, "b d"]]
    """Those of the images here, by view."""

    part: GatheredKeys
    """Those of the same images and those of other processes that are encoded with them."""

    batch: GatheredKeys
    """Those that queries may be compared with: of all accumulated parts if these were encoded before, else `part`."""


class Fresh(NamedTuple):
    """The keys of one step, and what adds up to its loss, without gradient; `Learner.after_step` needs both."""

    vectors: dict[int, Float[Tensor, "w_b d"]]
    """Unit vectors by view, gathered from all processes."""

    image: Int[Tensor, "w_b"]
    """Numbers of their images."""

    terms: Float[Tensor, "k"]
    """`Step.terms`; `Adaptive` numbers follow their sum."""

    shares: Float[Tensor, "k"]
    """Share of each branch's queries, over all processes, that have a positive."""


class StepSeeds(NamedTuple):
    """The seeds of a step, all made from the run's seed and the number of the step."""

    orders: dict[int, Int[Tensor, "n"]]
    """Of shuffle-BN: a random order of n rows, by n."""

    query: Int[Tensor, "b"]
    """Of each query: `Keys.seed`."""

    step: int
    """Of all queries together: `Keys.step_seed`."""


class Watched(NamedTuple):
    """What is watched of a branch's queries while a run trains, without gradient."""

    query: Float[Tensor, "b d"]
    """Their vectors."""

    positive: Float[Tensor, "b"]
    """Mean cosine of each query with its positives."""

    nearest: Float[Tensor, "b"]
    """Largest cosine of each query with a fresh key of another image of the step, or with its row of the bank if
    positives are rows of a bank; −1 if there is none."""


class Step(NamedTuple):
    """The results of one forward pass, as plain tensors so that any wrapper can pass them on."""

    loss: Float[Tensor, ""]
    """Weighted sum over the branches."""

    fresh: Fresh
    """The keys to remember after the step."""

    watched: dict[int, Watched]
    """What is watched of the queries, by branch: of each branch that is the first to query with its view."""

    losses: Float[Tensor, "k"]
    """Loss of each branch before its weight, without gradient, for monitoring."""

    terms: Float[Tensor, "k"]
    """Loss of each branch times its weight. They add up to `loss`; of an accumulated part, each counts by its share of
    the batch's queries that have a positive."""


def joint_keys(parts: Sequence[Fresh]) -> GatheredKeys:
    """The keys of all accumulated parts of a batch, in the order of the joint batch: a store is written once a step."""
    if len(parts) == 1:
        return GatheredKeys(parts[0].vectors, parts[0].image)
    vectors = {view: torch.cat([part.vectors[view] for part in parts]) for view in parts[0].vectors}
    return GatheredKeys(vectors, torch.cat([part.image for part in parts]))


def joint_loss(parts: Sequence[Fresh]) -> Float[Tensor, ""]:
    """The loss of all accumulated parts of a batch."""
    return mean_of_parts([part.terms for part in parts], [part.shares for part in parts]).sum()


def mean_of_parts(values: Sequence[Float[Tensor, "*k"]], shares: Sequence[Float[Tensor, "*k"]]) -> Float[Tensor, "*k"]:
    """The mean over the accumulated parts of a batch, each of which counts by its share of queries that have a
    positive. A mean over these queries is then that of the joint batch; it is 0 if there are none."""
    if len(shares) == 1:  # usually: a GPU is started for one operation instead of seven
        return values[0] * (shares[0] > 0)
    share = torch.stack(list(shares))
    weight = share / share.sum(0).clamp(min=torch.finfo(share.dtype).tiny)
    return (torch.stack(list(values)) * weight).sum(0)
