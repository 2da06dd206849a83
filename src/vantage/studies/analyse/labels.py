"""How well a run's clusters agree with the classes: purity and mutual information of its labels, their sizes, and how
many labels change.

n: images   j: images that have a class   k: clusters in use
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import torch
from jaxtyping import Int
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source, labels_of
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks
from vantage.storage.figures import color, legend_name, panels, set_titles
from vantage.storage.tables import Row, align

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Labels", "Labelings", "Labeling", "churn", "mutual_information", "purity"]


def purity(label: Int[Tensor, "n"], true: Int[Tensor, "n"]) -> float:
    """Share of images that are of the most frequent class in their cluster, 0 to 1; 1 if each image is a cluster."""
    pair, times = torch.stack([label, true]).unique(dim=1, return_counts=True)
    largest = torch.zeros(int(label.max()) + 1, dtype=torch.int64).scatter_reduce_(0, pair[0], times, "amax")
    return int(largest.sum()) / len(label)


def mutual_information(label: Int[Tensor, "n"], true: Int[Tensor, "n"]) -> float:
    """Mutual information of cluster and class, divided by the mean of their entropies, 0 to 1."""
    from sklearn.metrics import normalized_mutual_info_score  # slow to import

    return float(normalized_mutual_info_score(true.numpy(), label.numpy()))


def churn(before: Int[Tensor, "n"], after: Int[Tensor, "n"]) -> float:
    """1 − the adjusted Rand index of two clusterings of the same images: 0 if the same images are grouped together,
    about 1 if the two are independent. The names of clusters do not matter."""
    from sklearn.metrics import adjusted_rand_score  # slow to import

    return 1.0 - float(adjusted_rand_score(before.numpy(), after.numpy()))


@dataclass(frozen=True)
class Labeling:
    """One clustering of one run's memory."""

    name: str
    """The run, with branch and number if it has several clusterings."""

    label: Int[Tensor, "n"]
    """Cluster of each image at the newest checkpoint."""

    true: Int[Tensor, "n"]
    """Class of each image; −1 if it has none."""

    chance_label: Int[Tensor, "j"]
    """The labels of the images that have a class, randomly permuted among them: a baseline with the same sizes."""

    before: Int[Tensor, "n"] | None
    """Cluster of each image at the previous checkpoint; None if there is none."""

    steps: int
    """Optimizer steps between the two checkpoints; 0 if there is only one."""

    def row(self) -> Row:
        """The numbers of the table."""
        has_class = self.true >= 0
        label, true, size = self.label[has_class], self.true[has_class], self.sizes()
        return {
            "labels": self.name,
            "images": len(self.label),
            "clusters": len(size),
            "smallest": int(size[-1]),
            "median": int(size.median()),
            "largest": int(size[0]),
            "purity": purity(label, true),
            "purity_by_chance": purity(self.chance_label, true),
            "information": mutual_information(label, true),
            "information_by_chance": mutual_information(self.chance_label, true),
            "churn": None if self.before is None else churn(self.before, self.label),
            "churn_steps": self.steps or None,
        }

    def sizes(self) -> Int[Tensor, "k"]:
        """Number of images in each non-empty cluster, the largest first."""
        return self.label.unique(return_counts=True)[1].sort(descending=True).values


@dataclass(frozen=True)
class Labels:
    """A run's pseudo-labels against the classes (InterCLR, Xie et al., arXiv 2008.11702). Training never sees classes.

    For every memory with clusters (such as `ClusteredBank`): the number of non-empty clusters and their
    sizes; purity and normalized mutual information with the classes, each with the value for randomly permuted labels,
    since both grow with the number of clusters; and churn, 1 − the adjusted Rand index of the two checkpoints that a
    run keeps. The images must be those that the run was trained on.
    """

    name: ClassVar[str] = "labels"

    seed: int = 0
    """Seed of the random permutation of labels."""

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> "Labelings":
        """The labels of each run. Raises `UserError` if a run has no clusters or was trained on other images, or if
        no image has a class."""
        true = labels_of(source)
        if not bool((true >= 0).any()):
            raise UserError(f"none of the {len(source)} images has a class to compare with: put classes in folders")
        generator = torch.Generator().manual_seed(draws.mix(self.seed, draws.Purpose.PERMUTED_LABELS))
        labelings: list[Labeling] = []
        for model in runs:
            current, before = _clusterings(model), model.before()
            if not current:
                raise UserError(
                    f"{model.name} keeps no clusters: its branches have no ClusteredBank or ReclusteredBank"
                )
            true = labels_of(model.trained_on(source))
            earlier, steps = (_clusterings(before), model.step - before.step) if before else ({}, 0)
            for place, label in current.items():
                name = model.name if len(current) == 1 else f"{model.name} {place}"
                labels = label[true >= 0]
                chance_label = labels[torch.randperm(len(labels), generator=generator)]
                labelings.append(Labeling(name, label, true, chance_label, earlier.get(place), steps))
        return Labelings(tuple(labelings))


def _clusterings(model: TrainedNetworks) -> dict[str, Int[Tensor, "n"]]:
    """Labels by branch and number of the clustering, in the order of the images."""
    clusterings = {}
    for branch in sorted(set(model.learner.owners)):
        pool = model.pool(branch)
        for number, label in enumerate(pool.cluster.T if pool.cluster is not None else ()):
            clusterings[f"{branch}.{number}"] = torch.empty_like(label).scatter_(0, pool.image, label).cpu()
    return clusterings


@dataclass(frozen=True)
class Labelings:
    """The clusterings of all runs."""

    labelings: tuple[Labeling, ...]
    """One for each run, memory and clustering."""

    def table(self) -> list[Row]:
        """A row for each clustering."""
        return [one.row() for one in self.labelings]

    def lines(self) -> list[str]:
        """The table as text, with the meaning of its columns."""
        return [
            *align(self.table()),
            "purity: share of images that are of the most frequent class in their cluster; information: mutual"
            " information with the class, divided by the mean of both entropies; by chance: with the labels permuted",
            "churn: 1 − adjusted Rand index of the labels of the last two checkpoints, which are churn_steps apart",
        ]

    def figure(self) -> "Figure":
        """Purity, information and churn as bars, with marks for chance; and the sizes of the clusters."""
        rows, count = self.table(), len(self.labelings)
        figure, axes = panels(1, 2)
        bars, sizes = axes[0]
        width = 0.8 / count
        for number, (row, one) in enumerate(zip(rows, self.labelings, strict=True)):
            place = [n + (number - (count - 1) / 2) * width for n in range(3)]
            height = [row["purity"], row["information"], row["churn"] or 0.0]
            bars.bar(place, height, width * 0.92, color=color(number), label=legend_name(one.name))
            for x, chance in zip(place, ("purity_by_chance", "information_by_chance"), strict=False):
                bars.plot([x - width * 0.46, x + width * 0.46], [row[chance]] * 2, color="black", linewidth=1.5)
            if row["churn"] is None:
                bars.text(place[2], 0.01, "one checkpoint", rotation=90, fontsize=7, ha="center", va="bottom")
            size = one.sizes().tolist()
            sizes.step(range(1, len(size) + 1), size, where="mid", color=color(number), label=legend_name(one.name))
        bars.set_xticks(range(3), ["purity", "mutual information\n(normalized)", "churn"], fontsize=9)
        bars.set_ylim(0, 1.02)
        sizes.set_ylim(0)
        set_titles(bars, "Clusters and classes (black: by chance)", "", "0 to 1")
        set_titles(sizes, "Sizes of the clusters", "cluster, the largest first", "images")
        sizes.legend(fontsize=8)
        return figure
