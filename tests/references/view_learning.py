"""Eq. 2 and 3 of InfoMin (arXiv 2005.10243), section 4.2, as loops over scalars.

n: images   d: width of the vectors   c: classes
"""

import math


def information(first: list[list[float]], second: list[list[float]], temperature: float) -> float:
    """I_NCE of n pairs of vectors: log n less the mean of both directions' contrastive losses."""
    count, losses = len(first), []
    for query, answering in ((first, second), (second, first)):
        for own in range(count):
            scores = [sum(a * b for a, b in zip(query[own], other, strict=True)) / temperature for other in answering]
            losses.append(-math.log(math.exp(scores[own]) / sum(math.exp(score) for score in scores)))
    return math.log(count) - sum(losses) / len(losses)


def cross_entropy(logits: list[list[float]], label: list[int]) -> float:
    """Mean of −log softmax at the label."""
    losses = [-math.log(math.exp(row[y]) / sum(math.exp(z) for z in row)) for row, y in zip(logits, label, strict=True)]
    return sum(losses) / len(losses)


def between_gaussian_channels(covariance: list[list[float]]) -> float:
    """I(Y₁; Y₂₃) = ½ log(Σ₁₁ det Σ₂₃ / det Σ) of three jointly Gaussian channels (identity 26)."""
    (a, b, c), (_, e, f), (_, _, i) = covariance
    rest = e * i - f * f
    whole = a * rest - b * (b * i - c * f) + c * (b * f - c * e)
    return 0.5 * math.log(a * rest / whole)
