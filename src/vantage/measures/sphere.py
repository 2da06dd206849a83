"""How unit vectors lie on the sphere: how near to their positives, how evenly spread, in how many dimensions.

b: vectors   d: width
"""

import torch
from jaxtyping import Float
from torch import Tensor

__all__ = ["alignment", "deviation", "effective_rank", "pair_potential", "uniformity"]


def alignment(cosine: Float[Tensor, "b"]) -> Float[Tensor, ""]:
    """Mean squared distance |x − y|² of pairs of unit vectors, from their cosines (Wang & Isola, arXiv 2005.10242)."""
    return (2.0 - 2.0 * cosine).double().mean()


def pair_potential(vector: Float[Tensor, "b d"]) -> Float[Tensor, ""]:
    """Mean of exp(−2|x − y|²) over pairs of different unit vectors; 0 for a single vector."""
    kernel = torch.exp(4.0 * (vector @ vector.T - 1.0))
    mean = (kernel.sum() - kernel.diagonal().sum()) / max(1, len(vector) * (len(vector) - 1))
    return mean.double()


def uniformity(potential: float) -> float:
    """The logarithm of a mean `pair_potential` (Wang & Isola, arXiv 2005.10242): −4 for vectors uniform on a sphere of
    many dimensions, 0 if all are equal."""
    return float(torch.tensor(potential).clamp(min=1e-30).log())


def effective_rank(outer: Float[Tensor, "d d"]) -> float:
    """exp of the entropy of the singular values of X, from XᵀX (Roy & Vetterli 2007; RankMe, arXiv 2210.02885, Eq.
    2)."""
    singular = torch.linalg.eigvalsh(outer.double().cpu()).clamp(min=0).sqrt()
    share = singular / singular.sum().clamp(min=1e-12) + 1e-7
    return float(torch.exp(-(share * share.log()).sum()))


def deviation(total: Float[Tensor, "d"], outer: Float[Tensor, "d d"], count: float | Tensor) -> float:
    """Standard deviation of the vectors, averaged over dimensions, times √d; computed from their number, their sum and
    the sum of their outer products. 1 if they are spread over the sphere, 0 if all are equal."""
    center = total / count
    variance = (outer.diagonal() / count - center.square()).clamp(min=0)
    return float(variance.sqrt().mean() * len(total) ** 0.5)
