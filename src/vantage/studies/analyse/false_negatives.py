"""How many of the negatives that a rule chooses are of the query's class.

b: queries   m: images   c: clusterings   d: width of the vectors
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source, labels_of
from vantage.data.sources.subset import SourceSubset
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks, random_networks
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
from vantage.studies.analyse.false_negative_table import FalseNegativeTable, RuleNegatives
from vantage.studies.analyse.queries import queries, tiles

__all__ = ["FalseNegatives", "shares"]


@dataclass(frozen=True)
class FalseNegatives:
    """Share of negatives that are of the query's class, by the rule that chose them. Training never sees classes.

    Queries are augmented images and keys are one augmentation of every image, both made by the views of the branch and
    passed through the encoder and its head. Every run encodes all keys, and so does the random encoder; this takes most
    of the time, and `keys` makes it less. The rules are: all keys; `Sample`; `Ring`, `Ball` and `Hardest` at a share;
    InterCLR's random, semi-hard, hard and semi-easy draws from other clusters (Xie et al., arXiv 2008.11702, §3.2);
    `OwnCluster` (Cave); and each branch's own rules in their current state, on the same keys in place of its memory.
    Rules rank and draw as in training, where the query's own row may take part; keys of the query's own image are not
    counted. If the run has clusters, these are used, and the images must be those that it was trained on; otherwise
    clusters come from k-means of the keys. If it was trained on a part of the images, the keys are of that part.
    """

    name: ClassVar[str] = "false-negatives"
    features_suffice: ClassVar[bool] = True

    images: int = 1_024
    """Number of images that queries are made from, drawn without replacement from the keys' images; all if there are
    fewer. Every image is encoded as a key all the same, for every run and the random encoder: see `keys`."""

    keys: int = 0
    """Number of images that are keys, drawn without replacement; 0: all images. With fewer keys, ranks and shares are
    those among these keys."""

    share: float = 0.1
    """Share of the keys that Ring, Ball, Hardest, semi-hard and semi-easy keep, above 0, at most 1; for Ring, also the
    share that its inner cut drops."""

    drawn: int = 256
    """Number of keys that rules with a random draw choose for each query: with replacement by `Sample`; by the others
    without, and fewer if fewer remain."""

    clusters: int = 0
    """Number of k-means clusters for a run that has none; 0: one for every 128 keys, at least two."""

    random_encoder: bool = True
    """Whether a random encoder of the first run's architecture is analyzed too."""

    seed: int = 0
    """Seed of the sample of images, of their augmentations, and of k-means."""

    def __post_init__(self) -> None:
        for field, least in (("images", 1), ("keys", 0), ("drawn", 1), ("clusters", 0)):
            if getattr(self, field) < least:
                raise UserError(f"{field} is {getattr(self, field)}: give at least {least}")
        if not 0 < self.share <= 1:
            raise UserError(f"share is {self.share}: give one above 0, at most 1")

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> "FalseNegativeTable":
        """The shares of each run. Raises `UserError` if no image has a class, or if a run with clusters was trained on
        others, and otherwise as `augmented_vectors`."""
        _classes(source)
        source = _clustered_images(runs, source)
        numbers = draw_numbers(len(source), self.keys or len(source), draws.mix(self.seed, 2))
        key_images = SourceSubset(source, numbers)
        labeled = (_classes(key_images) >= 0).nonzero().squeeze(1)
        image = labeled[draw_numbers(len(labeled), self.images, self.seed)]
        rows: list[RuleNegatives] = []
        for model in (*runs, *([random_networks(runs[0], self.seed)] if self.random_encoder else ())):
            rows += self._rows_of(model, key_images, image, work)
        return FalseNegativeTable(tuple(rows))

    def _rows_of(
        self, model: TrainedNetworks, key_images: SourceSubset, image: Int[Tensor, "b"], work: Work
    ) -> list[RuleNegatives]:
        """The rows of one encoder: of all rules, and of the branches' own if it is a run's. `image` holds the numbers
        of the queries' images among those of the keys."""
        true = labels_of(key_images)
        rows: list[RuleNegatives] = []
        own: list[RuleNegatives] = []
        pairs: dict[tuple[int, int], tuple[Keys, Keys]] = {}
        for number, branch in enumerate(model.branches):
            views = (branch.query, branch.pool_views[0])
            if views not in pairs:
                pairs[views] = self._queries_and_keys(model, key_images, image, views, work)
            query, keys = pairs[views]
            if number == 0:
                keys = replace(keys, cluster=self._clusters(model, key_images, keys.vector))
                rows = [_rule_negatives(model, name, query, keys, rules, true) for name, rules in self.rules()]
            if model.folder is None:  # a baseline has no rules of its own, so its other branches add nothing
                break
            keys = replace(keys, cluster=_memory_clusters(model, key_images, number))
            parts = ", ".join(type(rule).__name__ for rule in branch.negatives) or "all"
            own.append(_rule_negatives(model, parts, query, keys, branch.negatives, true))
        return rows + _own_rows(own)

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
        self, model: TrainedNetworks, source: Source, image: Int[Tensor, "b"], views: tuple[int, int], work: Work
    ) -> tuple[Keys, Keys]:
        """Queries from one view, and keys from a draw of the other view for every image: row i is image i of the
        source."""
        query = queries(model, source, image, views[0], self.seed, work)
        every = torch.arange(len(source))
        return query, queries(model, source, every, views[1], draws.mix(self.seed, 1), work)

    def _clusters(
        self, model: TrainedNetworks, key_images: SourceSubset, vector: Float[Tensor, "m d"]
    ) -> Int[Tensor, "m c"]:
        """The clusters of the run's first memory that has any; otherwise those of k-means."""
        for number in range(len(model.branches)):
            if (label := _memory_clusters(model, key_images, number)) is not None:
                return label
        clusters = min(self.clusters or max(2, len(vector) // 128), len(vector))
        return kmeans(vector, clusters, self.seed, 20)[0][:, None]


def shares(
    query: Keys, pool: Keys, rules: tuple[Rule, ...], true: Int[Tensor, "m"], step: int
) -> tuple[Float[Tensor, "b"], Float[Tensor, "b"]]:
    """For each query: the number of negatives that the rules choose, without its own image and images that have no
    class; and the share of these negatives that are of the query's class, nan if there are none. Row i of the pool is
    image i, and `true` holds its class."""
    count, share = [], []
    for query_part, scores in tiles(query, pool, rules, step):
        key_class = scores.of(true)
        counts = scores.keep & (scores.of(pool.image) != query_part.image[:, None]) & (key_class >= 0)
        same = counts & (key_class == true[query_part.image][:, None])
        count.append(counts.sum(1).double())
        share.append(same.sum(1).double() / count[-1])
    return torch.cat(count), torch.cat(share)


def _rule_negatives(
    model: TrainedNetworks, name: str, query: Keys, pool: Keys, rules: tuple[Rule, ...], true: Int[Tensor, "m"]
) -> RuleNegatives:
    count, share = shares(query, pool, rules, true.to(query.vector.device), model.step)
    return RuleNegatives(model.name, name, float(count.mean()), share.cpu())


def _classes(images: Source) -> Int[Tensor, "m"]:
    """The class of each image, -1 if it has none. Raises `UserError` if none has."""
    true = labels_of(images)
    if not bool((true >= 0).any()):
        raise UserError(f"none of the {len(images)} images has a class to compare with: put classes in folders")
    return true


def _clustered_images(runs: Sequence[TrainedNetworks], source: Source) -> Source:
    """The images, or those of them that the runs with clusters were trained on."""
    clustered = [model for model in runs if any(_clusters_of(model, n) is not None for n in range(len(model.branches)))]
    for model in clustered:
        source = model.trained_on(source)
    for model in clustered:
        model.check_images(source)
    return source


def _clusters_of(model: TrainedNetworks, branch: int) -> Int[Tensor, "m c"] | None:
    """The clusters of the rows of a branch's memory; None if it has none, or if nothing was trained."""
    return None if model.folder is None else model.pool(branch).cluster


def _memory_clusters(model: TrainedNetworks, images: SourceSubset, branch: int) -> Int[Tensor, "m c"] | None:
    """The clusters of some images of a run in a branch's memory; None if it has none."""
    cluster = _clusters_of(model, branch)
    if cluster is None:
        return None
    rows = torch.empty_like(cluster).index_copy_(0, model.pool(branch).image, cluster)
    return rows[images.numbers.to(cluster.device)]


def _own_rows(of_branches: list[RuleNegatives]) -> list[RuleNegatives]:
    """The rows of a run's branches. Equal ones, as of branches whose rules keep every key, are one, which names them
    all."""
    alike: list[list[int]] = []
    for number, row in enumerate(of_branches):
        group = next((group for group in alike if row.equals(of_branches[group[0]])), None)
        alike.append([number]) if group is None else group.append(number)
    rows = [(_in_words(group) if len(of_branches) > 1 else "", of_branches[group[0]]) for group in alike]
    return [replace(row, rule=f"the run's{branches}: {row.rule}") for branches, row in rows]


def _in_words(branches: list[int]) -> str:
    """Numbers of branches: " 0", " 0, 2", or " 0 to 5"."""
    first, last = branches[0], branches[-1]
    if len(branches) > 2 and last - first == len(branches) - 1:
        return f" {first} to {last}"
    return f" {', '.join(map(str, branches))}"
