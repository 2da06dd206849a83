"""InterCLR's measures of a cell: how close images of one class are, and how well its clusters match the classes.

n: images   q: queries   a: augmentations of each   d: width of the vectors   k: neighbors   v: classes of vehicles
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.data import labels_of
from vantage.errors import UserError
from vantage.evaluate import neighbors
from vantage.memory.kmeans import Distance, nearest
from vantage.studies.analyse.augmentation import draw_numbers
from vantage.studies.analyse.classes import class_structure
from vantage.studies.analyse.labels import purity
from vantage.studies.analyse.queries import queries
from vantage.studies.lab.contracts import Subject
from vantage.studies.lab.measures.vectors import augment

__all__ = ["ClassSimilarity", "ClusterAgreement", "NeighborClasses", "NeighborSuperclasses"]


@dataclass(frozen=True)
class ClassSimilarity:
    """InterCLR's Figure 7 in numbers: augmentations of an image, images of a class, and images of different classes.

    Vectors are the head's outputs, of unit length; similarities are mean cosines of two augmentations.
    """

    images: int = 512
    """Number of test images."""

    augmentations: int = 8
    """Augmentations of each image."""

    name = "class similarity"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """The similarities, two combinations of them, outliers in percent, and the silhouette of the classes."""
        test = subject.split.test
        label = labels_of(test)[draw_numbers(len(test), self.images, subject.seed)]
        return class_structure(augment(subject, self.images, self.augmentations), label)


@dataclass(frozen=True)
class ClusterAgreement:
    """How well the clusters of a run's first memory agree with the classes, and with the network's current state."""

    name = "clusters"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """In percent: purity, mates of the image's own class, and stale labels. A label is stale if its centroid is no
        longer the nearest one after the network has computed all vectors anew, from one augmentation of each image.
        Raises `UserError` for a run without clusters."""
        networks, train = subject.networks(), subject.split.train
        networks.check_images(train)
        pool = networks.pool(0)
        if pool.cluster is None:
            raise UserError(f"{networks.name} keeps no clusters")
        label = torch.empty_like(pool.cluster[:, 0]).scatter_(0, pool.image, pool.cluster[:, 0]).cpu()
        label, classes = label.unique(return_inverse=True)[1], labels_of(train)
        vector = queries(networks, train, torch.arange(len(train)), 0, subject.seed, subject.work).vector.cpu()
        return {
            "purity": 100 * purity(label, classes),
            "true mates": 100 * true_mates(label, classes),
            "stale labels": 100 * stale_labels(vector, label),
        }


def true_mates(label: Int[Tensor, "n"], true: Int[Tensor, "n"]) -> float:
    """Share of an image's cluster mates, without itself, that belong to its class: the mean over images with mates."""
    mates = label.bincount()[label] - 1
    _, which, times = torch.stack([label, true]).unique(dim=1, return_inverse=True, return_counts=True)
    own = (times[which] - 1)[mates > 0]
    return float((own / mates[mates > 0]).mean())


def stale_labels(vector: Float[Tensor, "n d"], label: Int[Tensor, "n"]) -> float:
    """Share of images that are closer to the mean of another cluster than to that of their own; labels are 0, 1, …"""
    total = vector.new_zeros(int(label.max()) + 1, vector.shape[1]).index_add_(0, label, vector)
    centroid = total / label.bincount()[:, None]
    return float((nearest(vector, centroid, Distance())[0] != label).double().mean())


@dataclass(frozen=True)
class NeighborClasses:
    """InterCLR's Figure 9 in numbers: the classes of the nearest training images of every test image."""

    k: int = 10
    """Number of neighbors."""

    name = "neighbors' classes"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """In percent: test images whose neighbors are all of their class, and those with no neighbor of their class.
        For the latter, the share of the commonest class among their neighbors, and among as many training images of
        other classes drawn at random."""
        train, test = subject.split.train, subject.split.test
        number = neighbors(subject.encoder, train, test, self.k, subject.work).number
        label, own = labels_of(train), labels_of(test)
        right = label[number] == own[:, None]
        failing = ~right.any(1)
        numbers = {
            "all neighbors right": 100 * float(right.all(1).double().mean()),
            "no neighbor right": 100 * float(failing.double().mean()),
        }
        if bool(failing.any()):
            weight = (label != own[failing][:, None]).double()
            sample = torch.multinomial(weight, self.k, generator=torch.Generator().manual_seed(subject.seed))
            numbers["commonest class of failures"] = commonest(label[number[failing]])
            numbers["commonest class by chance"] = commonest(label[sample])
        return numbers


@dataclass(frozen=True)
class NeighborSuperclasses:
    """Whether test images whose neighbors are all of other classes are at least among their own kind: the classes of
    CIFAR-10 are animals or vehicles."""

    k: int = 10
    """Number of neighbors."""

    vehicles: tuple[int, ...] = (0, 1, 8, 9)
    """Numbers of the classes of one kind, counted in alphabetical order: airplane, automobile, ship, truck."""

    name = "neighbors' superclasses"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """In percent: neighbors of the same kind as such a test image, and all training images of other classes that
        are, the mean over these test images. Nothing if there are none."""
        train, test = subject.split.train, subject.split.test
        number = neighbors(subject.encoder, train, test, self.k, subject.work).number
        return same_kind(labels_of(train), number, labels_of(test), torch.tensor(self.vehicles))


def same_kind(
    label: Int[Tensor, "n"], number: Int[Tensor, "q k"], own: Int[Tensor, "q"], vehicles: Int[Tensor, "v"]
) -> dict[str, float]:
    """The numbers of `NeighborSuperclasses`, for training images with these labels, and queries with these neighbors
    and labels of their own."""
    failing = ~(label[number] == own[:, None]).any(1)
    if not bool(failing.any()):
        return {}
    kind, own = torch.isin(label, vehicles), own[failing]
    same = torch.isin(own, vehicles)[:, None] == kind
    of_others = label != own[:, None]
    return {
        "superclass of failures": 100 * float(same.gather(1, number[failing]).double().mean()),
        "superclass by chance": 100 * float(((same & of_others).sum(1).double() / of_others.sum(1)).mean()),
    }


def commonest(label: Int[Tensor, "n k"]) -> float:
    """Share of a row's commonest class in percent, the mean over the rows."""
    count = (label[:, :, None] == label[:, None]).sum(2).amax(1)
    return 100 * float(count.double().mean()) / label.shape[1]
