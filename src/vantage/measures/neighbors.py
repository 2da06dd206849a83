"""The nearest rows of a bank of features, and the class that their labels vote for.

n: rows of the bank   q: queries   b: queries at once   d: width of the features   t: guesses for a query
k: neighbors   c: rows of the bank at once

Similarities are computed in tables of bounded size, whatever the numbers of queries and rows.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.measures.accuracy import best_classes

__all__ = ["best_of", "cosines", "nearest", "vote"]

_QUERIES, _BANK = 192, 50_000
"""Rows and columns of the one table of similarities in memory: 37 MiB."""


def vote(
    bank: Float[Tensor, "n d"],
    label: Int[Tensor, "n"],
    query: Float[Tensor, "q d"],
    classes: int,
    k: int,
    temperature: float,
) -> Int[Tensor, "q t"]:
    """The five classes with the most votes (fewer if there are fewer), best first. Each of the k nearest rows of the
    bank votes for its label with weight exp(cosine / temperature); −1 stands for a class without votes. Features may
    have any length."""
    guesses = []
    for cosine, near in nearest(bank, query, k):
        # Relative to the largest, so that a low temperature cannot overflow; never 0, which would mean no vote.
        weight = ((cosine - cosine[:, :1]) / temperature).exp_().clamp_min_(1e-30)
        votes = weight.new_zeros(len(near), classes).scatter_add_(1, label[near], weight)
        guess = best_classes(votes)
        guesses.append(guess.masked_fill(votes.gather(1, guess) == 0, -1))
    return torch.cat(guesses) if guesses else label.new_empty(0, min(5, classes))


def nearest(
    bank: Float[Tensor, "n d"], query: Float[Tensor, "q d"], k: int
) -> Iterator[tuple[Float[Tensor, "b k"], Int[Tensor, "b k"]]]:
    """Cosines and numbers of the k nearest rows of the bank, nearest first, for one batch of queries after another.

    No normalized copy of the bank is made; the table of similarities is scaled instead.
    """
    best: tuple[Tensor, Tensor] | None = None
    for _, first, cosine in cosines(bank, query, k):
        value, number = cosine.topk(min(k, cosine.shape[1]), dim=1)
        best = best_of(best if first else None, value, number.add_(first), k)
        if first + cosine.shape[1] == len(bank):
            yield best


def cosines(
    bank: Float[Tensor, "n d"], query: Float[Tensor, "q d"], least: int = 1
) -> Iterator[tuple[int, int, Float[Tensor, "b c"]]]:
    """First query, first row of the bank, and the cosines of some queries with some rows, table by table: all rows of
    the bank for a batch of queries, then the next batch. At least `least` rows at once, if there are that many.

    A table is valid only until the next one is requested, which reuses its memory.
    """
    columns = max(_BANK, least)
    table = bank.new_empty(min(_QUERIES, len(query)) * min(columns, len(bank)))
    scale = _inverse_length(bank)
    for start in range(0, len(query), _QUERIES):
        rows = torch.nn.functional.normalize(query[start : start + _QUERIES], dim=1)
        for first in range(0, len(bank), columns):
            part = bank[first : first + columns]
            cosine = table[: len(rows) * len(part)].view(len(rows), len(part))
            torch.mm(rows, part.T, out=cosine)
            if scale is not None:
                cosine.mul_(scale[first : first + columns])
            yield start, first, cosine


def best_of(
    best: tuple[Tensor, Tensor] | None, value: Float[Tensor, "b j"], number: Int[Tensor, "b j"], k: int
) -> tuple[Float[Tensor, "b k"], Int[Tensor, "b k"]]:
    """The k best of the earlier and the new candidates: their cosines and their numbers, best first."""
    if best is None:
        return value, number
    value, number = torch.cat([best[0], value], 1), torch.cat([best[1], number], 1)
    value, order = value.topk(min(k, value.shape[1]), dim=1)
    return value, number.gather(1, order)


def _inverse_length(bank: Float[Tensor, "n d"]) -> Float[Tensor, "n"] | None:
    """One over the length of each row; None if all rows have unit length, so that scaling would only cost time."""
    length = torch.cat([torch.linalg.vector_norm(part, dim=1) for part in bank.split(4096)])
    if bool(((length - 1).abs() < 1e-6).all()):
        return None
    return length.clamp_min(1e-12).reciprocal()
