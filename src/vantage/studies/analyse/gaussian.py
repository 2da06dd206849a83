"""Two numbers with known mutual information, and their optimal critic (arXiv 2010.02037, appendix B).

b: pairs   m: keys in the pool
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from vantage import draws
from vantage.errors import UserError
from vantage.measures.information import cnce, percentiles
from vantage.negatives import Sample
from vantage.records import Keys
from vantage.studies.analyse.curves import EstimateCurve, EstimateCurves

__all__ = ["LOWER", "Gaussian", "OptimalToy", "estimates"]

LOWER = (0.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0)
"""The percentiles w_ℓ of the paper's Table 5; 0 is NCE."""


@dataclass(frozen=True)
class Gaussian:
    """Two jointly Gaussian numbers of mean 0 and equal variance.

    As published: the sum of Gaussians with covariances [[1, −.5], [−.5, 1]] and [[1, .9], [.9, 1]].
    """

    variance: float = 2.0
    """Variance of each number."""

    covariance: float = 0.4
    """Covariance of the two, within ± variance."""

    def __post_init__(self) -> None:
        if not abs(self.covariance) < self.variance:
            raise UserError(
                f"no two numbers have variance {self.variance:g} and covariance {self.covariance:g}:"
                " give a covariance nearer to 0 than the variance"
            )

    @property
    def correlation(self) -> float:
        """The correlation of the two: covariance / variance."""
        return self.covariance / self.variance

    @property
    def information(self) -> float:
        """The mutual information I(X; Y) = −½ log(1 − correlation²), in nats."""
        return -0.5 * math.log1p(-(self.correlation**2))

    def pairs(self, count: int, seed: int) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
        """Independent pairs in float64, a function of the seed."""
        generator = torch.Generator().manual_seed(seed)
        first, second = torch.randn(2, count, generator=generator, dtype=torch.float64) * math.sqrt(self.variance)
        rho = self.correlation
        return first, rho * first + math.sqrt(1 - rho**2) * second

    def critic(self, x: Float[Tensor, "b"], y: Float[Tensor, "b"]) -> Float[Tensor, "b"]:
        """log p(y|x)/p(y), whose mean over pairs is the information: the critic that makes NCE's bound tightest."""
        return (self.queries(x, 0).vector * self.keys(y).vector).sum(1)

    def queries(self, x: Float[Tensor, "b"], seed: int) -> Keys:
        """The x side of `critic`, which is the inner product of three functions of x with (1, y, y²). `seed` decides
        which negatives the queries draw."""
        rest = 1 - self.correlation**2  # the share of y's variance that x does not explain
        by_x, by_y = x**2 * self.correlation**2, torch.full_like(x, -(self.correlation**2))
        scale = 2 * self.variance * rest
        cross = 2 * self.correlation * x
        image = torch.arange(len(x))
        vector = torch.stack([-by_x / scale - 0.5 * math.log(rest), cross / scale, by_y / scale], 1)
        return Keys(vector, image, seed=draws.query_seeds(seed, 0, image), step_seed=draws.mix(seed, 0))

    def keys(self, y: Float[Tensor, "m"]) -> Keys:
        """The y side of `critic`: (1, y, y²). The image numbers are −1, since the keys belong to no image."""
        return Keys(torch.stack([torch.ones_like(y), y, y**2], 1), torch.full((len(y),), -1))


@dataclass(frozen=True)
class OptimalToy:
    """NCE and CNCE in the Gaussian toy with the optimal critic, by the percentile w_ℓ of the negatives.

    Nothing is trained, so this shows how loose the bounds themselves are (CNCE falls below 0, which a trained critic
    could always avoid by being constant). The mean of the positive term is the known information, which replaces its
    estimate, so that the draw of the pairs hardly matters.
    """

    name: ClassVar[str] = "optimal-toy"

    gaussian: Gaussian = Gaussian()
    """The distribution."""

    lower: tuple[float, ...] = LOWER
    """Percentiles w_ℓ; 0 is NCE."""

    negatives: int = 100
    """Number of negatives drawn for each pair, with replacement."""

    pairs: int = 3_000
    """Number of pairs for each repetition."""

    pool: int = 2_000
    """Size of the pool of numbers y that negatives are drawn from and that defines the percentiles; independent of the
    pairs."""

    repetitions: int = 3
    """Number of repetitions, with seeds 0, 1, …"""

    def __post_init__(self) -> None:
        if not self.lower or min(self.negatives, self.pairs, self.pool, self.repetitions) < 1:
            raise UserError(
                f"the toy with percentiles {self.lower}, {self.negatives} negatives, {self.pairs} pairs, a pool of"
                f" {self.pool} and {self.repetitions} repetitions: give at least one of each"
            )

    def __call__(self) -> EstimateCurves:
        """The table and the picture."""
        estimates = [self._estimates(seed) for seed in range(self.repetitions)]
        curve = EstimateCurve.of("optimal critic", estimates)
        return EstimateCurves("NCE and CNCE with the optimal critic", self.gaussian.information, self.lower, (curve,))

    def _estimates(self, seed: int) -> list[float]:
        x, y = self.gaussian.pairs(self.pairs, 2 * seed)
        _, pool = self.gaussian.pairs(self.pool, 2 * seed + 1)
        query, keys, positive = self.gaussian.queries(x, seed), self.gaussian.keys(pool), self.gaussian.critic(x, y)
        chance = float(positive.mean()) - self.gaussian.information
        return [each - chance for each in estimates(positive, query, keys, self.lower, self.negatives)]


def estimates(
    positive: Float[Tensor, "b"],
    query: Keys,
    pool: Keys,
    lower: Sequence[float],
    negatives: int,
    temperature: float = 1.0,
) -> list[float]:
    """The mean estimate over the pairs for each percentile w_ℓ, with `negatives` draws from the pool above it."""
    rules = [(*percentiles(each), Sample(negatives)) for each in lower]
    return [float(cnce(positive, query, pool, rule, temperature).mean()) for rule in rules]
