"""Experiments with a known answer, as cells: they need no images, and no network but their own."""

from dataclasses import dataclass, replace

from vantage.studies.analyse.gaussian import LOWER
from vantage.studies.analyse.spread import SpreadToy
from vantage.studies.analyse.toy import TrainedToy

__all__ = ["NegativeSpread", "TrainedCritics", "above"]


def above(lower: float) -> str:
    """The name in tables of NCE, or of CNCE above a percentile."""
    return f"w {lower:g}" if lower else "NCE"


@dataclass(frozen=True)
class TrainedCritics:
    """CNCE's Table 5: critics of the Gaussian toy, one for each percentile (arXiv 2010.02037, appendix B)."""

    lower: tuple[float, ...] = LOWER
    """Percentiles w_ℓ; 0 is NCE."""

    pairs: int = 2_000
    """Training pairs."""

    epochs: int = 100
    """Passes over them."""

    held_out: int = 10_000
    """Number of held-out pairs."""

    name = "trained critics"
    version = 1

    @property
    def passes(self) -> float:
        """Its cost in forward passes of a small network. Training compares every pair with all others, so its time
        goes with pairs squared: 127 s on a core for Table 5."""
        return 1.1e-4 * len(self.lower) * self.epochs * self.pairs**2

    def measure(self, seed: int) -> dict[str, float]:
        """Estimates in nats: on held-out pairs by percentile, and on training pairs."""
        toy = replace(TrainedToy(), lower=self.lower, pairs=self.pairs, epochs=self.epochs, held_out=self.held_out)
        numbers = {"information": toy.gaussian.information}
        for lower in self.lower:
            on_training, on_others = toy.estimates(lower, seed)
            numbers |= {above(lower): on_others, f"{above(lower)}, training pairs": on_training}
        return numbers


@dataclass(frozen=True)
class NegativeSpread:
    """Bias and variance of NCE and CNCE with the optimal critic of the Gaussian toy (arXiv 2010.02037, Theorem 3.2)."""

    lower: tuple[float, ...] = (0.0, 50.0, 90.0)
    """Percentiles w_ℓ."""

    negatives: tuple[int, ...] = (16, 64, 256, 1024)
    """Numbers of negatives k."""

    pairs: int = 500
    """Pairs."""

    draws: int = 16
    """Draws of each pair's negatives."""

    pool: int = 8_192
    """Numbers that negatives are drawn from."""

    name = "spread of negatives"
    version = 1

    def measure(self, seed: int) -> dict[str, float]:
        """|bias| in nats, the variance over the negatives of a pair, and the whole variance, by percentile and k."""
        toy = SpreadToy(
            lower=self.lower, negatives=self.negatives, pairs=self.pairs, draws=self.draws, pool=self.pool, seed=seed
        )
        numbers = {}
        for row in toy().rows:
            which = f"{above(row.lower)}, k {row.negatives}"
            numbers |= {f"bias, {which}": abs(row.bias), f"variance, {which}": row.conditional}
            numbers[f"whole variance, {which}"] = row.total
        return numbers
