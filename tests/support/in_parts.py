"""Whether a step in accumulated parts computes what a step with the whole batch does."""

from dataclasses import dataclass, replace

import pytest
from sessions import session
from small_runs import in_groups
from torch import Tensor
from torch.testing import assert_close

from vantage.encoders import PerView, SplitBatchNorm
from vantage.positives import Remembered
from vantage.records import Keys, Pool, Scores
from vantage.training.run import Run

__all__ = ["RememberedOfSome", "assert_parts_equal_the_whole", "exact", "two_steps"]


@dataclass(frozen=True)
class RememberedOfSome:
    """The bank's row of the query's own image, except for some images."""

    every: int

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """The positives of images whose number does not leave the remainder 1."""
        return Remembered()(query, keys, pool, step).only(query.image[:, None] % self.every != 1)


def two_steps(run: Run) -> tuple[list[float], dict[str, Tensor]]:
    """The losses of two steps, and everything that changed."""
    one = session(run)
    batches = list(one.feed.batches(0, 0))
    return [float(one.step(batches[step], step)) for step in (0, 1)], dict(one.learner.state_dict())


def exact(run: Run, groups: int = 2) -> Run:
    """The run in 64 bits, with a tiny network in this many groups."""
    if isinstance(run.encoders, PerView):
        tiny = tuple(replace(encoder, normalization=SplitBatchNorm(groups)) for encoder in run.encoders.encoders)
        run = replace(run, encoders=PerView(tiny))
    else:
        run = in_groups(run, groups)
    return replace(run, hardware=replace(run.hardware, precision="64-true"))


def assert_parts_equal_the_whole(run: Run, accumulate: int) -> None:
    """Two steps in parts have the losses of two steps without, and leave behind the same."""
    (losses, whole), (losses_of_parts, in_parts) = two_steps(run), two_steps(replace(run, accumulate=accumulate))
    assert losses_of_parts == pytest.approx(losses, rel=1e-6)  # Fabric returns float32
    assert whole.keys() == in_parts.keys()
    for name, value in whole.items():
        assert_close(in_parts[name], value, rtol=1e-5, atol=1e-6)
