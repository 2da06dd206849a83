"""What is measured on a cell's network: accuracies by evaluation protocols, and analyses of its vectors.

n: images   a: augmentations of each   d: width of the vectors
"""

from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.data import labels_of
from vantage.evaluate import KNN, EvaluationProtocol, LinearCached
from vantage.measures.sphere import pair_potential, uniformity
from vantage.studies.analyse.augmentation import augmented_vectors, draw_numbers
from vantage.studies.analyse.queries import queries
from vantage.studies.analyse.similarity import within_image
from vantage.studies.lab.contracts import Subject

__all__ = ["ProtocolAccuracy", "FalseByBand", "JointKeys", "AugmentationSimilarity", "augment"]


@dataclass(frozen=True)
class ProtocolAccuracy:
    """Top-1 accuracy by evaluation protocols: classifiers fitted on the training images, scored on the test images."""

    protocols: tuple[EvaluationProtocol, ...] = field(default_factory=lambda: (LinearCached(l2=(1e-3,)), KNN(k=20)))
    """The protocols."""

    @property
    def name(self) -> str:
        """A short name."""
        return "accuracy"

    @property
    def version(self) -> int:
        """A number that changes with the version of any protocol."""
        return sum(1_000**place * one.version for place, one in enumerate(self.protocols))

    def __call__(self, subject: Subject) -> dict[str, float]:
        """The first measure of each protocol, in percent."""
        train, test = subject.split.train, subject.split.test
        outcomes = {one.name: one(subject.encoder, train, test, subject.work) for one in self.protocols}
        return {name: next(iter(outcome.measures.values())) for name, outcome in outcomes.items()}


@dataclass(frozen=True)
class AugmentationSimilarity:
    """JCL's Figure 3: how similar the augmentations of an image are, and what similarity alone does not show.

    Vectors are the head's outputs, of unit length. Similarity also rises when a network collapses, so `within −
    between` and `uniformity` are reported next to it.
    """

    images: int = 512
    """Number of test images."""

    augmentations: int = 16
    """Augmentations of each image."""

    name = "similarity"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """Means over the images, and quantiles of the similarity over them."""
        vector = augment(subject, self.images, self.augmentations).double()
        similarity, variance = within_image(vector)
        count = self.augmentations
        within = (similarity * count - 1) / (count - 1)  # without the self pairs
        mean = vector.mean(1)
        between = (mean @ mean.T).fill_diagonal_(0).sum() / (len(mean) * (len(mean) - 1))
        tenths = torch.quantile(similarity, torch.tensor((0.1, 0.5, 0.9), dtype=torch.float64)).tolist()
        return {
            "similarity": float(similarity.mean()),
            "variance": float(variance.mean()),
            "within − between": float(within.mean() - between),
            "uniformity": uniformity(float(pair_potential(vector[:, 0]))),
            **{f"similarity, {name}": value for name, value in zip(("10 %", "50 %", "90 %"), tenths, strict=True)},
        }


@dataclass(frozen=True)
class JointKeys:
    """What JCL claims about a query and the keys of its image, on frozen networks (arXiv 2009.14776, §3.3 and §4.4).

    The cosines of a query with the keys of its image have mean m and variance v; the negatives are the mean keys of all
    other images in the sample. For Gaussian keys the mean loss E ℓ is a one-dimensional integral, computed by
    Gauss-Hermite quadrature, and L(λ) is Eq. 8.
    """

    images: int = 256
    """Number of test images."""

    augmentations: int = 33
    """Augmentations of each image: the first is the query, the others are its keys."""

    temperature: float = 0.2
    """τ."""

    keys: tuple[int, ...] = (1, 3, 5, 9)
    """Numbers of keys M′ whose sampling error is measured."""

    strengths: tuple[float, ...] = (0.0, 0.2, 1.0, 4.0, 10.0, 40.0)
    """Values of λ for which the negatives' share of the gradient is measured."""

    redraws: int = 200
    """Number of times that M′ keys are drawn."""

    name = "joint keys"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """Gap of the bound, sampling error by M′, and the negatives' share of the gradient by λ."""
        vector = augment(subject, self.images, self.augmentations).double()
        query, key = vector[:, 0], vector[:, 1:]
        cosine = torch.einsum("nd,nad->na", query, key)
        others = (query @ key.mean(1).T / self.temperature).fill_diagonal_(-torch.inf).logsumexp(1)
        expected_loss, bounds = _losses(cosine, others, self.temperature, (1.0,))
        gap = bounds[0] - expected_loss
        numbers = {"gap of the bound": float(gap.mean()), "least gap of the bound": float(gap.min())}
        generator = torch.Generator().manual_seed(subject.seed)
        for count in self.keys:
            choice = torch.rand(self.redraws, *cosine.shape, generator=generator).argsort(-1)[..., :count]
            sample = cosine.expand(self.redraws, -1, -1).gather(2, choice)
            numbers[f"error of the mean key, M′ {count}"] = float(sample.mean(2).std(0).mean()) / self.temperature
            spread = sample.var(2, correction=0).mean() / cosine.var(1, correction=0).mean()
            numbers[f"share of the variance seen, M′ {count}"] = float(spread)
        mean, variance = cosine.mean(1) / self.temperature, cosine.var(1, correction=0) / self.temperature**2
        for strength in self.strengths:
            share = (others - mean - strength * variance / 2).sigmoid().mean()
            numbers[f"negatives' share, λ {strength:g}"] = float(share)
        return numbers


@dataclass(frozen=True)
class FalseByBand:
    """In bands of similarity to the query: how many of the negatives are of the query's class, and the share of the
    softmax that the band has.

    Keys are one augmentation of every training image, queries another one of some images; an image is not compared with
    itself.
    """

    images: int = 512
    """Number of training images used as queries."""

    temperature: float = 0.07
    """τ of the softmax."""

    edges: tuple[float, ...] = (0.0, 0.01, 0.1, 0.25, 0.5, 1.0)
    """Edges of the bands, from the most similar, as shares of the keys."""

    name = "false negatives"
    version = 1

    def __call__(self, subject: Subject) -> dict[str, float]:
        """The shares in percent, for each band and for all keys."""
        train, networks = subject.split.train, subject.networks()
        label, image = labels_of(train), draw_numbers(len(train), self.images, subject.seed)
        branch = networks.run.branches[0]
        query = queries(networks, train, image, branch.query, subject.seed, subject.work).vector
        key = queries(
            networks, train, torch.arange(len(train)), branch.pool_views[0], subject.seed + 1, subject.work
        ).vector
        cosine = (query @ key.T).double().cpu()
        cosine[torch.arange(len(image)), image] = -torch.inf
        descending, place = cosine.sort(1, descending=True)
        same = (label[place] == label[image][:, None]).double()[:, :-1]  # the query's own image comes last
        weight = (descending[:, :-1] / self.temperature).softmax(1)
        numbers = {"false negatives, all": 100 * float(same.mean())}
        for low, high in zip(self.edges, self.edges[1:], strict=False):
            part = slice(round(low * same.shape[1]), max(round(high * same.shape[1]), round(low * same.shape[1]) + 1))
            band = f"{100 * low:g} to {100 * high:g} %"
            numbers[f"false negatives, {band}"] = 100 * float(same[:, part].mean())
            numbers[f"softmax, {band}"] = 100 * float(weight[:, part].sum(1).mean())
        return numbers


def augment(subject: Subject, images: int, augmentations: int) -> Float[Tensor, "n a d"]:
    """Unit vectors of augmentations of some test images; the augmentations are the same for every cell of a seed."""
    image = draw_numbers(len(subject.split.test), images, subject.seed)
    parts = augmented_vectors(
        subject.networks(), subject.split.test, image, 0, augmentations, subject.seed, subject.work
    )
    return torch.cat([part.cpu() for part in parts])


def _losses(
    cosine: Float[Tensor, "n a"], log_sum: Float[Tensor, "n"], temperature: float, strengths: tuple[float, ...]
) -> tuple[Float[Tensor, "n"], list[Float[Tensor, "n"]]]:
    """E ℓ over Gaussian keys with the mean and variance of these cosines, and L(λ) for each λ; `log_sum` is the
    logarithm of the sum over the negatives."""
    from numpy.polynomial.hermite_e import hermegauss

    mean, variance = cosine.mean(1) / temperature, cosine.var(1, correction=0) / temperature**2
    node, weight = (torch.from_numpy(each) for each in hermegauss(40))
    at = mean[:, None] + variance.sqrt()[:, None] * node
    losses = torch.logaddexp(at, log_sum[:, None]) - at
    expected_loss = (losses * weight).sum(1) / weight.sum()
    return expected_loss, [torch.logaddexp(mean + strength * variance / 2, log_sum) - mean for strength in strengths]
