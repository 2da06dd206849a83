"""Positives from the query's own image."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import torch

from vantage.errors import UserError
from vantage.positives.positives import of_rows, pair_scores
from vantage.records import Keys, Pool, Scores

__all__ = ["FixedViews", "OtherViews", "Remembered"]


@dataclass(frozen=True)
class OtherViews:
    """The other views of the query's image, encoded at this step: one column for each of `Branch.keys` (MoCo, SimCLR,
    JCL).

    `Scores.key` numbers these columns, since their keys are not in the pool.
    """

    always_finds: ClassVar[Literal[True]] = True

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Raises `UserError` if the branch names no view for keys."""
        if not keys:
            raise UserError("OtherViews needs the keys of another view: name one or more in Branch.keys")
        vector = torch.stack([key.vector for key in keys], dim=1)
        column = torch.arange(len(keys), device=vector.device).expand(len(query), -1)
        return pair_scores(query, vector, column)


@dataclass(frozen=True)
class FixedViews:
    """`OtherViews` with keys that get no gradient: JCL's μ and Σ (arXiv 2009.14776, section 3.2).

    Keys of a momentum encoder never get one; here keys of other networks get none either.
    """

    always_finds: ClassVar[Literal[True]] = True

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Raises `UserError` if the branch names no view for keys."""
        constants = tuple(replace(key, vector=key.vector.detach()) for key in keys)
        return OtherViews()(query, constants, pool, step)


@dataclass(frozen=True)
class Remembered:
    """The bank's row of the query's own image (IR, CMC, PIRL): row i for image i."""

    always_finds: ClassVar[Literal[True]] = True

    def __call__(self, query: Keys, keys: tuple[Keys, ...], pool: Pool, step: int) -> Scores:
        """Raises `UserError` if the memory does not keep one row per image."""
        row = pool.row_of(query, "Remembered looks an image up by its number, but the memory is no bank: use Bank()")
        return of_rows(query, pool, row[:, None])
