"""What InterCLR asks of a cell: how images of a class lie to each other, and how its clusters agree with the classes.

n: images   a: augmentations of each   d: width of the vectors
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.data import labels_of
from vantage.errors import UserError
from vantage.memory.kmeans import Distance, nearest
from vantage.studies.analyse.augmentation import draw_numbers
from vantage.studies.analyse.labels import purity
from vantage.studies.analyse.queries import queries
from vantage.studies.lab.measuring import Seen, augmented

__all__ = ["ClassSimilarity", "Clusters"]


@dataclass(frozen=True)
class ClassSimilarity:
    """InterCLR's Figure 7 in numbers: augmentations of an image, images of a class, and images of different classes.

    Vectors are those behind the head, of unit length; similarities are mean cosines of two augmentations.
    """

    images: int = 512
    """Test images looked at."""

    augmentations: int = 8
    """Augmentations of each."""

    name = "class similarity"
    version = 1

    def __call__(self, seen: Seen) -> dict[str, float]:
        """The similarities, what they say together, outliers in percent, and the silhouette of the classes."""
        from sklearn.metrics import silhouette_score  # slow to import

        test = seen.split.test
        label = labels_of(test)[draw_numbers(len(test), self.images, seen.seed)]
        vector = augmented(seen, self.images, self.augmentations).double()
        image, own, other = similarities(vector, label)
        each = label.repeat_interleave(vector.shape[1])
        return {
            "similarity within images": image,
            "similarity within classes": own,
            "similarity between classes": other,
            "nearness of a class": (own - other) / (image - other),
            "image − class": image - own,
            "outliers": 100 * outliers(vector, label),
            "silhouette": float(silhouette_score(vector.flatten(0, 1).numpy(), each.numpy(), metric="cosine")),
        }


def similarities(vector: Float[Tensor, "n a d"], label: Int[Tensor, "n"]) -> tuple[float, float, float]:
    """Mean cosine of two augmentations of an image, of two images of a class, and of two classes. Raises `UserError`
    unless some images share a class and some do not."""
    count, mean = vector.shape[1], vector.mean(1)
    image = (mean.square().sum(1) * count - 1) / (count - 1)  # without the self pairs
    cosine, apart = mean @ mean.T, ~torch.eye(len(mean), dtype=torch.bool)
    same = label[:, None] == label
    if not bool((same & apart).any()) or bool(same.all()):
        raise UserError(f"{len(label)} images show no class twice, or only one: look at more")
    return float(image.mean()), float(cosine[same & apart].mean()), float(cosine[~same].mean())


def outliers(vector: Float[Tensor, "n a d"], label: Int[Tensor, "n"]) -> float:
    """Share of the augmentations whose nearest augmentation of another image is of another class."""
    flat, count = vector.flatten(0, 1), vector.shape[1]
    image = torch.arange(len(vector)).repeat_interleave(count)
    cosine = flat @ flat.T
    cosine[image[:, None] == image] = -torch.inf
    return float((label[image[cosine.argmax(1)]] != label[image]).double().mean())


@dataclass(frozen=True)
class Clusters:
    """How the clusters of a run's first memory agree with the classes, and with the network as it is now."""

    name = "clusters"
    version = 1

    def __call__(self, seen: Seen) -> dict[str, float]:
        """Percent: purity, mates of the own class, and stale labels, whose centroid is not the one nearest to the image
        where the network makes all vectors anew (from one augmentation of each). Raises `UserError` for a run without
        clusters."""
        networks, train = seen.networks(), seen.split.train
        networks.check_images(train)
        pool = networks.pool(0)
        if pool.cluster is None:
            raise UserError(f"{networks.name} keeps no clusters")
        label = torch.empty_like(pool.cluster[:, 0]).scatter_(0, pool.image, pool.cluster[:, 0]).cpu()
        label, true = label.unique(return_inverse=True)[1], labels_of(train)
        vector = queries(networks, train, torch.arange(len(train)), 0, seen.seed, seen.work).vector.cpu()
        return {
            "purity": 100 * purity(label, true),
            "true mates": 100 * true_mates(label, true),
            "stale labels": 100 * stale_labels(vector, label),
        }


def true_mates(label: Int[Tensor, "n"], true: Int[Tensor, "n"]) -> float:
    """Share of an image's mates, itself left out, that are of its class: the mean over images that have mates."""
    mates = label.bincount()[label] - 1
    _, which, times = torch.stack([label, true]).unique(dim=1, return_inverse=True, return_counts=True)
    own = (times[which] - 1)[mates > 0]
    return float((own / mates[mates > 0]).mean())


def stale_labels(vector: Float[Tensor, "n d"], label: Int[Tensor, "n"]) -> float:
    """Share of images that are nearer to another cluster's mean than to that of their own; labels are 0, 1, …"""
    total = vector.new_zeros(int(label.max()) + 1, vector.shape[1]).index_add_(0, label, vector)
    centroid = total / label.bincount()[:, None]
    return float((nearest(vector, centroid, Distance())[0] != label).double().mean())
