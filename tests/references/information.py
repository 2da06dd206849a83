"""Mutual information by its bounds, as loops over scalars, from arXiv 2010.02037.

b: pairs   k: negatives of each   m: keys in the pool   r: draws of all negatives of a pair
"""

import math

import torch


def nce(positive: list[float], negative: list[list[float]]) -> list[float]:
    """Eq. 1 of each pair: log( e^f(u, v₁) / (1/(k+1) · Σ over the positive and k negatives of e^f) )."""
    estimates = []
    for own, others in zip(positive, negative, strict=True):
        mean = (math.exp(own) + sum(math.exp(f) for f in others)) / (len(others) + 1)
        estimates.append(math.log(math.exp(own) / mean))
    return estimates


def between(values: list[float], lower: float, upper: float) -> list[int]:
    """Section 4: columns whose value lies between two percentiles, w_ℓ and w_u, of a row's values; in order."""
    descending = sorted(range(len(values)), key=lambda column: -values[column])
    outer = math.floor(len(values) * (100 - lower) / 100 + 1e-6)
    inner = math.floor(len(values) * (100 - upper) / 100 + 1e-6)
    return sorted(descending[inner:outer])


def log_ratio(x: float, y: float, variance: float, covariance: float) -> float:
    """log p(x, y) / (p(x) p(y)) from the three densities."""
    determinant = variance**2 - covariance**2
    square = (variance * x * x - 2 * covariance * x * y + variance * y * y) / determinant
    both = -0.5 * square - math.log(2 * math.pi) - 0.5 * math.log(determinant)
    return both - sum(-0.5 * z * z / variance - 0.5 * math.log(2 * math.pi * variance) for z in (x, y))


def information(variance: float, covariance: float, points: int = 400, reach: float = 8.0) -> float:
    """I(X; Y) = ∫∫ p(x, y) log p(x, y)/(p(x) p(y)), by the midpoint rule on a square of ± `reach` deviations."""
    edge = reach * math.sqrt(variance)
    width = 2 * edge / points
    centers = [-edge + (i + 0.5) * width for i in range(points)]
    total = 0.0
    for x in centers:
        for y in centers:
            ratio = log_ratio(x, y, variance, covariance)
            alone = sum(-0.5 * z * z / variance - 0.5 * math.log(2 * math.pi * variance) for z in (x, y))
            total += math.exp(ratio + alone) * ratio * width**2
    return total


def supremum(correlation: float, share: float, points: int = 601, reach: float = 6.0) -> float:
    """What CNCE above the share `cut` of the keys can be at most, for any critic and boundless many negatives, of a
    Gaussian pair.

    For one x, with r = p(y|x)/p(y), CNCE is E log u − log(E u over the keys above the cut) for u = e^f. What is below
    the cut does not count in the second term and is best raised to the cut's own value, 1; there the slope vanishes for
    u = max(1, r · D) with D = ∫ u − cut. The cut lies where u is flat, as is checked where x is not far out. Without a
    cut it is the information.
    """
    y = torch.linspace(-reach, reach, points, dtype=torch.float64)
    x, rest = y[::10, None], 1 - correlation**2
    density = torch.exp(-y * y / 2) / torch.exp(-y * y / 2).sum()
    ratio = torch.exp(y * y / 2 - (y - correlation * x) ** 2 / (2 * rest)) / math.sqrt(rest)
    ratio = ratio / (ratio @ density)[:, None]
    above = torch.full_like(x, 1 - share)
    for _ in range(1_000):
        above = (ratio * above).clamp(min=1) @ density[:, None] - share
    best = (ratio * above).clamp(min=1)
    assert bool(((best <= 1).double() @ density >= share - 0.02)[x[:, 0].abs() < 4].all())
    values = (ratio * best.log()) @ density - ((best @ density - share) / (1 - share)).log()
    return float(values @ density[::10] / density[::10].sum())


def bias_and_variances(estimates: list[list[float]], exact: list[float]) -> tuple[float, float, float]:
    """Theorem 3.2: bias, mean of the variances over each pair's draws, and variance over all; variances unbiased."""
    values = [value for row in estimates for value in row]
    bias = sum(value - exact[i] for i, row in enumerate(estimates) for value in row) / len(values)
    return bias, sum(variance(row) for row in estimates) / len(estimates), variance(values)


def variance(values: list[float]) -> float:
    """Σ (value − mean)² / (n − 1)."""
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)


def of_pairs(
    query: list[list[float]], key: list[list[float]], order: list[int], negatives: int, temperature: float
) -> list[float]:
    """Eq. 1 of each pair (query i, key i) with the critic q·k/τ, its negatives the keys of the pairs that follow it in
    an order, round the end."""

    def critic(i: int, j: int) -> float:
        return sum(a * b for a, b in zip(query[i], key[j], strict=True)) / temperature

    estimates = [0.0] * len(query)
    for position, i in enumerate(order):
        others = [order[(position + after) % len(order)] for after in range(1, negatives + 1)]
        (estimates[i],) = nce([critic(i, i)], [[critic(i, j) for j in others]])
    return estimates
