"""How many of the negatives that a rule chooses are of the query's class.

b: queries   m: images   n: keys scored
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source, labels_of
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.memory.kmeans import kmeans
from vantage.negatives import (
    Ball,
    Count,
    Distinct,
    Easiest,
    Hardest,
    OtherClusters,
    OwnCluster,
    Ring,
    Rule,
    Sample,
    Share,
)
from vantage.records import Keys
from vantage.schedules import Constant
from vantage.studies.analyse.augmentation import draw_numbers
from vantage.studies.analyse.false_negative_table import ChosenNegatives, FalseNegativeTable
from vantage.studies.analyse.networks import TrainedNetworks, random_networks
from vantage.studies.analyse.queries import queries, tiles

__all__ = ["FalseNegatives", "shares"]


@dataclass(frozen=True)
class FalseNegatives:
    """Share of negatives that are of the query's class, by the rule that chose them. No training sees classes.

    Queries are augmented images, keys one augmentation of every image, both as the run makes the views of the branch,
    through the encoder and its head. The rules: all keys; `Sample`; `Ring`, `Ball` and `Hardest` at a share; InterCLR's
    random, semi-hard, hard and semi-easy draws from other clusters (Xie et al., arXiv 2008.11702, §3.2), and
    `OwnCluster` (Cave); and each branch's own rules, as they are now, on the same keys in place of its memory. Rules
    rank and draw as in training, where the own row may take part; keys of the query's own image are not counted.
    Clusters are the run's own where it keeps some, and then the images must be those that it was trained on; else
    k-means of the keys.
    """

    name: ClassVar[str] = "false-negatives"

    images: int = 1_024
    """Images that queries are made of, drawn without replacement; all where there are fewer."""

    share: float = 0.1
    """Share of the keys that Ring, Ball, Hardest, semi-hard and semi-easy keep, 0 to 1; of Ring, also of its inner
    cut."""

    drawn: int = 256
    """Keys that rules with a draw choose for each query; fewer where fewer are left."""

    clusters: int = 0
    """Clusters of k-means where a run keeps none; 0: one for every 128 keys, at least two."""

    random_encoder: bool = True
    """Whether a random encoder of the first run's architecture is analyzed too."""

    seed: int = 0
    """Decides which images and augmentations are drawn, and where k-means starts."""

    def __post_init__(self) -> None:
        for field, least in (("images", 1), ("drawn", 1), ("clusters", 0)):
            if getattr(self, field) < least:
                raise UserError(f"{field} is {getattr(self, field)}: give at least {least}")
        if not 0 < self.share <= 1:
            raise UserError(f"share is {self.share}: give one above 0, at most 1")

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> "FalseNegativeTable":
        """The shares of each run. Raises `UserError` where no image has a class, else as `augmented_vectors`."""
        true = labels_of(source)
        labeled = (true >= 0).nonzero().squeeze(1)
        if not len(labeled):
            raise UserError(f"none of the {len(source)} images has a class to compare with: put classes in folders")
        image = labeled[draw_numbers(len(labeled), self.images, self.seed)]
        rows: list[ChosenNegatives] = []
        for one in (*runs, *([random_networks(runs[0], self.seed)] if self.random_encoder else ())):
            pairs: dict[tuple[int, int], tuple[Keys, Keys]] = {}
            for number, branch in enumerate(one.branches):
                views = (branch.query, branch.pooled[0])
                if views not in pairs:
                    pairs[views] = self._queries_and_keys(one, source, image, views, work)
                query, keys = pairs[views]
                if number == 0:
                    keys = replace(keys, cluster=self._clusters(one, source, keys.vector))
                    rows += [_chosen(one, name, query, keys, rules, true) for name, rules in self.rules()]
                if one.folder is not None:  # the rules of a run, not of a baseline
                    keys = replace(keys, cluster=_kept_clusters(one, source, number))
                    rows.append(_chosen(one, _own(one, number), query, keys, branch.negatives, true))
        return FalseNegativeTable(tuple(rows))

    def rules(self) -> list[tuple[str, tuple[Rule, ...]]]:
        """The rules that every encoder is analyzed with, by name."""
        share, others = Constant(self.share), OtherClusters()
        few = Distinct(self.drawn)
        return [
            ("all", ()),
            (f"sample of {self.drawn:,}", (Sample(self.drawn),)),
            (f"ring {self.share:g}", (Ring(share, share),)),
            (f"ball (hardest) {self.share:g}", (Ball(share),)),
            ("own cluster", (OwnCluster(),)),
            ("other clusters", (others,)),
            ("others, random", (others, Sample(self.drawn))),
            (f"others, semi-hard {self.share:g}", (others, Hardest(Share(share)), few)),
            (f"others, hardest {self.drawn:,}", (others, Hardest(Count(self.drawn)))),
            (f"others, semi-easy {self.share:g}", (others, Easiest(Share(share)), few)),
        ]

    def _queries_and_keys(
        self, one: TrainedNetworks, source: Source, image: Int[Tensor, "b"], views: tuple[int, int], work: Work
    ) -> tuple[Keys, Keys]:
        """Queries of one view, and as keys a draw of the other for every image: row i is image i."""
        query = queries(one, source, image, views[0], self.seed, work)
        every = torch.arange(len(source))
        return query, queries(one, source, every, views[1], draws.mix(self.seed, 1), work)

    def _clusters(self, one: TrainedNetworks, source: Source, vector: Float[Tensor, "m d"]) -> Int[Tensor, "m c"]:
        """The clusters of the run's first memory that has some, else of k-means."""
        for number in range(len(one.branches)):
            if (label := _kept_clusters(one, source, number)) is not None:
                return label
        clusters = min(self.clusters or max(2, len(vector) // 128), len(vector))
        return kmeans(vector, clusters, self.seed, 20)[0][:, None]


def shares(
    query: Keys, pool: Keys, rules: tuple[Rule, ...], true: Int[Tensor, "m"], step: int
) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
    """How many negatives the rules choose for each query, those of its own image and those without a class left out,
    and the share of them that is of its class, nan where there is none. Row i of the pool is image i, `true` its
    class."""
    count, share = [], []
    for some, scores in tiles(query, pool, rules, step):
        kind = scores.of(true)
        counts = scores.keep & (scores.of(pool.image) != some.image[:, None]) & (kind >= 0)
        same = counts & (kind == true[some.image][:, None])
        count.append(counts.sum(1).double())
        share.append(same.sum(1).double() / count[-1])
    return torch.cat(count), torch.cat(share)


def _chosen(
    one: TrainedNetworks, name: str, query: Keys, pool: Keys, rules: tuple[Rule, ...], true: Int[Tensor, "m"]
) -> ChosenNegatives:
    count, share = shares(query, pool, rules, true.to(query.vector.device), one.step)
    return ChosenNegatives(one.name, name, float(count.mean()), share.cpu())


def _kept_clusters(one: TrainedNetworks, source: Source, branch: int) -> Int[Tensor, "m c"] | None:
    """The clusters that a branch's memory keeps of these images."""
    pool = one.pool(branch)
    if one.folder is None or pool.cluster is None:
        return None
    one.check_images(source)
    return torch.empty_like(pool.cluster).index_copy_(0, pool.image, pool.cluster)


def _own(one: TrainedNetworks, number: int) -> str:
    which = "" if len(one.branches) == 1 else f" {number}"
    parts = [type(rule).__name__ for rule in one.branches[number].negatives]
    return f"the run's{which}: {', '.join(parts) or 'all'}"
