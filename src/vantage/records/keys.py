"""What parts pass to each other: vectors with the numbers and clusters of their images, and tables of cosines.

b: queries   n: keys scored   m: keys in the pool   d: width   c: clusterings
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from vantage.errors import UserError
from vantage.records.members import Members

__all__ = ["Keys", "Scores", "demand", "score"]


@dataclass(frozen=True)
class Keys:
    """Vectors, with the number, the clusters and the seed of each one's image.

    Queries are `Keys` too. Vectors have unit length, except means of several keys (JCL).
    """

    vector: Float[Tensor, "m d"]
    """One vector in each row."""

    image: Int[Tensor, "m"]
    """Number of the image that each row shows; −1 if there is none, as in a queue that is not yet filled."""

    cluster: Int[Tensor, "m c"] | None = None
    """Label of each row in each of c clusterings, or `None` if the memory keeps no clusters."""

    seed: Int[Tensor, "m"] | None = None
    """Random seed of each query, from which rules draw; see `vantage.draws`."""

    step_seed: int | None = None
    """Random seed that all queries of a step share, on every process; `Subset` draws from it."""

    members: Members | None = None
    """The memory's index of rows by label, so that they need not be sorted at every step; if `None`, an index is made
    when needed."""

    def __len__(self) -> int:
        return len(self.vector)

    @property
    def clusters(self) -> Int[Tensor, "m c"]:
        """Labels of each row. Raises `UserError` if the memory keeps none."""
        if self.cluster is None:
            raise UserError(
                "these keys have no clusters: give the branch a memory that keeps them, such as ClusteredBank()"
            )
        return self.cluster

    @property
    def seeds(self) -> Int[Tensor, "m"]:
        """Random seed of each query. Raises `UserError` if there is none."""
        if self.seed is None:
            raise UserError(
                "these queries have no seeds, so nothing can be drawn for them: set Keys.seed (Learner does)"
            )
        return self.seed

    def row_of(self, query: "Keys", otherwise: str) -> Int[Tensor, "b"]:
        """The row of each query's image, for keys whose row i belongs to image i, as in a bank.

        Raises `UserError` with the text `otherwise` if a row belongs to another image; on a GPU see `demand`.
        """
        row = query.image.clamp(max=len(self) - 1)
        demand((self.image[row] == query.image).all(), otherwise)
        return row

    def image_of(self, row: Int[Tensor, "r"]) -> Int[Tensor, "r"]:
        """The image of each of these rows."""
        return self.image[row]

    def rows(self, index: slice | Int[Tensor, "r"] | Bool[Tensor, "m"]) -> "Keys":
        """The record of these rows only."""
        cluster = None if self.cluster is None else self.cluster[index]
        seed = None if self.seed is None else self.seed[index]
        return Keys(self.vector[index], self.image[index], cluster, seed, self.step_seed)


@dataclass(frozen=True)
class Scores:
    """Cosines of each query with some keys; only pairs with `keep` set count."""

    cosine: Float[Tensor, "b n"]
    """Inner product of the query and the key of each column."""

    key: Int[Tensor, "b n"]
    """For each query, the row of the pool that each column stands for."""

    keep: Bool[Tensor, "b n"]
    """Whether the pair counts."""

    keeps_all: bool = False
    """Whether no pair has been dropped. Set by `Scores.whole`, since reading the flags on a GPU would make the host
    wait."""

    @classmethod
    def whole(cls, cosine: Float[Tensor, "b n"], key: Int[Tensor, "b n"]) -> "Scores":
        """Scores with no pair dropped; the flags are a single `True`, expanded."""
        return cls(cosine, key, torch.ones((), dtype=torch.bool, device=cosine.device).expand(cosine.shape), True)

    def of(self, field: Int[Tensor, "m *c"]) -> Int[Tensor, "b n *c"]:
        """Look up a field of the pool for each column, as in `scores.of(pool.image)`."""
        if self.key.stride(0) == 0:  # the same keys for every query: look them up once
            row = field[self.key[0]]
            return row.expand(len(self.key), *row.shape)
        return field[self.key]

    @property
    def count(self) -> Int[Tensor, "b"]:
        """How many pairs of each query count."""
        if self.keeps_all:
            return self.key.new_full((len(self.key),), self.key.shape[1])
        if self.keep.device.type == "cpu" and not torch.compiler.is_compiling():
            # torch takes forty times as long as NumPy to sum flags
            return torch.tensor([int(np.count_nonzero(row)) for row in self.keep.numpy()], dtype=torch.int64)
        return self.keep.sum(1)

    def only(self, keep: Bool[Tensor, "b n"]) -> "Scores":
        """Fewer pairs: those that counted before and satisfy `keep`."""
        return Scores(self.cosine, self.key, keep if self.keeps_all else self.keep & keep)

    def narrow(self, column: Int[Tensor, "b k"]) -> "Scores":
        """Fewer columns, chosen for each query, so that memory shrinks. A column may be chosen twice."""
        cosine, key, keep = (field.gather(1, column) for field in (self.cosine, self.key, self.keep))
        return Scores(cosine, key, keep, self.keeps_all)

    def logits(self, temperature: float) -> Float[Tensor, "b n"]:
        """cosine / temperature, −inf where dropped."""
        return (self.cosine / temperature).masked_fill(~self.keep, -torch.inf)


def demand(holds: Bool[Tensor, ""], otherwise: str) -> None:
    """Raises `UserError` with the text `otherwise` unless the flag holds.

    On a GPU the host does not wait for the flag: a device assertion with the same text ends the process some steps
    later. Whatever can fail in a run has been tried on the CPU before (`vantage.training.start.try_parts`).
    """
    if holds.device.type != "cpu" or torch.compiler.is_compiling():
        torch._assert_async(holds, otherwise)  # pyright: ignore[reportPrivateImportUsage]
    elif not bool(holds):
        raise UserError(otherwise)


def score(query: Keys, pool: Keys) -> Scores:
    """The scores of each query with each key of the pool, with no pair dropped."""
    cosine = query.vector @ pool.vector.T
    key = torch.arange(len(pool), device=cosine.device).expand_as(cosine)
    return Scores.whole(cosine, key)
