"""Objectives as loops over scalars.

Every result is made of scalar tensors, so autograd gives gradients.

τ: temperature   a: cosine with a positive   b: cosine with a negative
"""

import math

import torch
from torch import Tensor


def dot(left: Tensor, right: Tensor) -> Tensor:
    """Inner product, one product at a time."""
    return sum((left[i] * right[i] for i in range(len(left))), torch.zeros((), dtype=torch.float64))


def log_sum_exp(numbers: list[Tensor]) -> Tensor:
    """log Σ exp; −inf for no numbers."""
    if not numbers:
        return torch.tensor(-torch.inf, dtype=torch.float64)
    top = max(float(number.detach()) for number in numbers)
    return top + torch.log(sum((torch.exp(number - top) for number in numbers), torch.zeros((), dtype=torch.float64)))


def partition(query: Tensor, keys: Tensor, columns: list[list[int]], temperature: float) -> Tensor:
    """log Σ_j exp(q·k_j/τ) over the listed keys of each query; a key listed twice counts twice."""
    rows = [log_sum_exp([dot(query[i], keys[j]) / temperature for j in columns[i]]) for i in range(len(query))]
    return torch.stack(rows)


def info_nce(a: list[list[Tensor]], b: list[list[Tensor]], temperature: float, margin: float = 0.0) -> list[Tensor]:
    """Mean over the positives of −log( e^((a−m)/τ) / (e^((a−m)/τ) + Σ e^(b/τ)) ); 0 for a query without positives."""
    losses = []
    for positives, negatives in zip(a, b, strict=True):
        terms = []
        for positive in positives:
            own = (positive - margin) / temperature
            terms.append(log_sum_exp([own, *[negative / temperature for negative in negatives]]) - own)
        losses.append(sum(terms, torch.zeros((), dtype=torch.float64)) / max(1, len(terms)))
    return losses


def jcl(query: Tensor, keys: Tensor, negatives: list[Tensor], temperature: float, strength: float) -> Tensor:
    """JCL Eq. 8 for one query and its keys (m d): mean and d × d covariance, entry by entry; the keys as constants."""
    keys = keys.detach()
    many, width = keys.shape
    zero = torch.zeros((), dtype=torch.float64)
    mean = [sum((keys[m, i] for m in range(many)), zero) / many for i in range(width)]
    quadratic = zero
    for i in range(width):
        for j in range(width):
            entry = sum(((keys[m, i] - mean[i]) * (keys[m, j] - mean[j]) for m in range(many)), zero) / many
            quadratic = quadratic + query[i] * entry * query[j]
    pull = dot(query, torch.stack(mean)) / temperature
    lift = pull + strength / (2 * temperature**2) * quadratic
    return log_sum_exp([lift, *[dot(query, key) / temperature for key in negatives]]) - pull


def decoupled(a: list[list[Tensor]], b: list[list[Tensor]], temperature: float) -> list[Tensor]:
    """Mean over the positives of −log( e^(a/τ) / Σ e^(b/τ) ); 0 for a query without positives or without negatives."""
    losses = []
    for positives, negatives in zip(a, b, strict=True):
        rest = log_sum_exp([negative / temperature for negative in negatives])
        terms = [rest - positive / temperature for positive in positives] if negatives else []
        losses.append(sum(terms, torch.zeros((), dtype=torch.float64)) / max(1, len(terms)))
    return losses


def debiased(a: list[list[Tensor]], b: list[list[Tensor]], temperature: float, prior: float) -> list[Tensor]:
    """`hcl` without weights."""
    return hcl(a, b, temperature, 0.0, prior)


def hcl(
    a: list[list[Tensor]], b: list[list[Tensor]], temperature: float, hardness: float, prior: float
) -> list[Tensor]:
    """Mean over the positives of −log( e^(a/τ) / (e^(a/τ) + N g) ), with N g = max( (N Σ e^((1+β)b/τ) / Σ e^(βb/τ)
    − τ⁺ N e^(a/τ)) / (1 − τ⁺), N e^(−1/τ) ); 0 for a query without positives or without negatives."""
    losses, zero = [], torch.zeros((), dtype=torch.float64)
    for positives, negatives in zip(a, b, strict=True):
        terms, many = [], len(negatives)
        for positive in positives if negatives else []:
            above = sum((torch.exp((1 + hardness) * negative / temperature) for negative in negatives), zero)
            below = sum((torch.exp(hardness * negative / temperature) for negative in negatives), zero)
            own = torch.exp(positive / temperature)
            corrected = (many * above / below - prior * many * own) / (1 - prior)
            least = many * math.exp(-1 / temperature)
            rest = corrected if float(corrected.detach()) > least else torch.full_like(zero, least)
            terms.append(-torch.log(own / (own + rest)))
        losses.append(sum(terms, zero) / max(1, len(terms)))
    return losses


def local_aggregation(a: list[list[Tensor]], b: list[list[Tensor]], temperature: float) -> list[Tensor]:
    """−log( Σ_{C∩B} e^(a/τ) / Σ_B e^(s/τ) + 1e-7 ), where a are those of C∩B and b the others of B."""
    losses, zero = [], torch.zeros((), dtype=torch.float64)
    for mates, others in zip(a, b, strict=True):
        near = sum((torch.exp(s / temperature) for s in mates), zero)
        both = near + sum((torch.exp(s / temperature) for s in others), zero)
        losses.append(-torch.log(near / both + 1e-7))
    return losses


def mean_aggregation(a: list[list[Tensor]], b: list[list[Tensor]], temperature: float, near: int) -> list[Tensor]:
    """CNCE Eq. 5 with its sign turned: −log( mean over C of e^(a/τ), over the mean over the `near` rows B of e^(b/τ)
    )."""
    losses, zero = [], torch.zeros((), dtype=torch.float64)
    for mates, rows in zip(a, b, strict=True):
        above = sum((torch.exp(s / temperature) for s in mates), zero) / len(mates)
        below = sum((torch.exp(s / temperature) for s in rows), zero) / near
        losses.append(-torch.log(above / below))
    return losses


def pooled_nce(a: list[list[Tensor]], b: list[list[Tensor]], temperature: float) -> list[Tensor]:
    """−log( P / (P + Σ e^(b/τ)) ), where P is the mean over the positives of e^(a/τ)."""
    losses, zero = [], torch.zeros((), dtype=torch.float64)
    for mates, rows in zip(a, b, strict=True):
        above = sum((torch.exp(s / temperature) for s in mates), zero) / len(mates)
        losses.append(-torch.log(above / (above + sum((torch.exp(s / temperature) for s in rows), zero))))
    return losses


def together(logits: list[Tensor]) -> Tensor:
    """Positives joined by log-sum-exp."""
    return log_sum_exp(logits)


def on_average(logits: list[Tensor]) -> Tensor:
    """Positives joined by their mean."""
    return sum(logits, torch.zeros((), dtype=torch.float64)) / len(logits)


def neighbors(own: Tensor, near: list[Tensor], ring: list[Tensor], temperature: float, join) -> Tensor:
    """methods.md 2.8, `neighbor_views`: log-sum-exp of own positive and ring, less own and near positives joined."""
    below = log_sum_exp([own / temperature, *[s / temperature for s in ring]])
    return below - join([own / temperature, *[s / temperature for s in near]])


def arc_nce(a: list[list[Tensor]], b: list[list[Tensor]], temperature: float, margin: float) -> list[Tensor]:
    """InfoNCE with cos(θ + m) for each positive; past the turn of that cosine, cos θ − |m| sin m (ArcFace)."""
    rows = []
    for positives in a:
        row = []
        for cosine in positives:
            angle = torch.acos(cosine)
            wraps = float(angle.detach()) + margin > math.pi if margin >= 0 else float(angle.detach()) + margin < 0
            row.append(cosine - abs(margin) * math.sin(margin) if wraps else torch.cos(angle + margin))
        rows.append(row)
    return info_nce(rows, b, temperature)


def nce(a: list[Tensor], b: list[list[Tensor]], temperature: float, images: int, z: float) -> list[Tensor]:
    """methods.md 2.1 (a): P = e^(s/τ)/Z, h = P/(P + K/n + 1e-7), −log h(positive) − Σ log(1 − h(negative))."""
    losses = []
    for positive, negatives in zip(a, b, strict=True):
        noise = len(negatives) / images + 1e-7
        p = torch.exp(positive / temperature) / z
        loss = -torch.log(p / (p + noise))
        for negative in negatives:
            p = torch.exp(negative / temperature) / z
            loss = loss - torch.log(1 - p / (p + noise))
        losses.append(loss)
    return losses


def nce_normalizer(a: list[Tensor], b: list[list[Tensor]], temperature: float, images: int) -> float:
    """Z = n · mean of e^(s/τ) over the K + 1 columns of a batch."""
    columns = [float(s.detach()) for s in [*a, *(s for row in b for s in row)]]
    return images * sum(math.exp(s / temperature) for s in columns) / len(columns)


def nt_xent(first: Tensor, second: Tensor, temperature: float) -> Tensor:
    """SimCLR: each of 2N views against its other view and 2N − 2 others; mean over 2N."""
    views = [*first, *second]
    count, losses = len(first), []
    for i, query in enumerate(views):
        mate = (i + count) % (2 * count)
        logits = [dot(query, views[j]) / temperature for j in range(2 * count) if j != i]
        losses.append(log_sum_exp(logits) - dot(query, views[mate]) / temperature)
    return torch.stack(losses).mean()


def moco(query: Tensor, key: Tensor, queue: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of [q·k | q·queue]/τ with the positive in column 0; mean over the batch."""
    losses = []
    for i in range(len(query)):
        own = dot(query[i], key[i]) / temperature
        losses.append(log_sum_exp([own, *[dot(query[i], row) / temperature for row in queue]]) - own)
    return torch.stack(losses).mean()


def instance_discrimination(
    feature: Tensor, bank: Tensor, image: list[int], columns: list[list[int]], t: float
) -> Tensor:
    """Cross-entropy of [own row | drawn rows]/τ; the full softmax when all other rows are drawn."""
    losses = []
    for i, number in enumerate(image):
        own = dot(feature[i], bank[number]) / t
        losses.append(log_sum_exp([own, *[dot(feature[i], bank[j]) / t for j in columns[i]]]) - own)
    return torch.stack(losses).mean()
