"""How augmentations lie on the sphere: close together for an image, and for a class? InterCLR's figure 7.

n: images   a: augmentations of each   d: width of the vectors
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from vantage.data.sources.names import text_of
from vantage.data.sources.source import Source, labels_of
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks, random_networks
from vantage.measures.layout import places
from vantage.storage.figures import color, panels
from vantage.storage.tables import Row, align
from vantage.studies.analyse.augmentation import augmented_vectors, draw_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_EQUAL = 1e-6  # vectors that differ by less come from rounding
_ROWS = 1_024  # augmentations that are compared with all others at once

__all__ = ["AugmentationMap", "AugmentationMaps", "Classes", "class_structure", "outliers", "similarities"]


def similarities(vector: Float[Tensor, "n a d"], label: Int[Tensor, "n"]) -> tuple[float, float, float]:
    """Mean cosine of two augmentations of an image, of two images of a class, and of images of two classes. Raises
    `UserError` unless some images share a class and some do not."""
    count, mean = vector.shape[1], vector.mean(1)
    image = (mean.square().sum(1) * count - 1) / (count - 1)  # without the self pairs
    cosine, apart = mean @ mean.T, ~torch.eye(len(mean), dtype=torch.bool)
    same = label[:, None] == label
    if not bool((same & apart).any()) or bool(same.all()):
        raise UserError(f"among {len(label)} images no class occurs twice, or there is only one class: use more images")
    return float(image.mean()), float(cosine[same & apart].mean()), float(cosine[~same].mean())


def outliers(vector: Float[Tensor, "n a d"], label: Int[Tensor, "n"]) -> float:
    """Share of the augmentations whose nearest augmentation of another image belongs to another class."""
    flat, count = vector.flatten(0, 1), vector.shape[1]
    image = torch.arange(len(vector)).repeat_interleave(count)
    wrong = 0
    for part in torch.arange(len(flat)).split(_ROWS):
        cosine = flat[part] @ flat.T
        cosine[image[part][:, None] == image] = -torch.inf
        wrong += int((label[image[cosine.argmax(1)]] != label[image[part]]).sum())
    return wrong / len(flat)


def class_structure(vector: Float[Tensor, "n a d"], label: Int[Tensor, "n"]) -> dict[str, float]:
    """The three mean cosines, two combinations of them, outliers in percent, and the silhouette of the classes. Raises
    `UserError` if all vectors are equal, and like `similarities`."""
    from sklearn.metrics import silhouette_score  # slow to import

    vector = vector.double()
    if bool((vector - vector[:1, :1]).abs().amax() < _EQUAL):
        raise UserError("all augmentations have the same vector: the network has collapsed, or all images are equal")
    image, same, different = similarities(vector, label)
    each = label.repeat_interleave(vector.shape[1])
    return {
        "similarity within images": image,
        "similarity within classes": same,
        "similarity between classes": different,
        "nearness of a class": (same - different) / (image - different),
        "image − class": image - same,
        "outliers": 100 * outliers(vector, label),
        "silhouette": float(silhouette_score(vector.flatten(0, 1).numpy(), each.numpy(), metric="cosine")),
    }


@dataclass(frozen=True)
class Classes:
    """Where the augmentations of some images of some classes lie (InterCLR, Xie et al., arXiv 2008.11702, Fig. 7).

    The picture shows every augmentation, laid out by t-SNE, in the color of its class, and joined to the middle of its
    image. The table has the numbers of all pairs: how similar are augmentations of one image, images of one class, and
    images of two classes; and for how many augmentations the nearest of another image is of another class (outliers).
    Augmentations are the run's own; vectors are the head's outputs, of unit length.
    """

    name: ClassVar[str] = "classes"
    features_suffice: ClassVar[bool] = True

    classes: int = 6
    """Number of classes, drawn from those with at least two images."""

    images: int = 10
    """Images of each class; all if it has fewer."""

    augmentations: int = 16
    """Augmentations of each image."""

    view: int = 0
    """Index of the run's view that makes the augmentations."""

    random_encoder: bool = False
    """Whether a random encoder of the first run's architecture is shown too."""

    seed: int = 0
    """Seed of the sample of classes and images, and of their augmentations."""

    def __post_init__(self) -> None:
        for field, least in (("classes", 2), ("images", 2), ("augmentations", 2), ("view", 0)):
            if getattr(self, field) < least:
                raise UserError(f"{field} is {getattr(self, field)}: give at least {least}")

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> "AugmentationMaps":
        """A map for each run. Raises `UserError` if fewer than two classes have two images, and the same errors as
        `augmented_vectors`."""
        encoders = [*runs, random_networks(runs[0], self.seed)] if self.random_encoder else runs
        all_labels = labels_of(source)
        image = self._sample(all_labels)
        label, maps = all_labels[image], []
        for model in encoders:
            parts = augmented_vectors(model, source, image, self.view, self.augmentations, self.seed, work)
            vector = torch.cat([part.float().cpu() for part in parts])
            numbers = class_structure(vector, label)  # first: t-SNE does not survive vectors that are all equal
            place = places(vector.flatten(0, 1), work.num_workers).unflatten(0, vector.shape[:2])
            maps.append(AugmentationMap(model.name, label, place, numbers))
        named = [text_of(name) for name in source.classes]
        shown = label.unique().tolist()
        names = tuple(named[number] if number < len(named) else f"class {number}" for number in shown)
        return AugmentationMaps(tuple(maps), names)

    def _sample(self, label: Int[Tensor, "n"]) -> Int[Tensor, "m"]:
        """Numbers of the images, sorted."""
        number, size = label[label >= 0].unique(return_counts=True)
        usable = number[size >= 2]
        if len(usable) < 2:
            found = "only one class has" if len(usable) else "no class has"
            raise UserError(f"{found} two images or more: two such classes are needed")
        chosen = usable[draw_numbers(len(usable), self.classes, self.seed)]
        of_class = [(label == one).nonzero()[:, 0] for one in chosen]
        drawn = [rows[draw_numbers(len(rows), self.images, self.seed)] for rows in of_class]
        return torch.cat(drawn).sort().values


@dataclass(frozen=True)
class AugmentationMap:
    """The augmentations of all images, through one encoder."""

    name: str
    """The encoder."""

    label: Int[Tensor, "n"]
    """Class of each image."""

    place: Float[Tensor, "n a 2"]
    """Position of each augmentation in the unit square."""

    numbers: dict[str, float]
    """The numbers of `class_structure`."""


@dataclass(frozen=True)
class AugmentationMaps:
    """A map for each encoder."""

    maps: tuple[AugmentationMap, ...]
    """The maps, which show the same images."""

    classes: tuple[str, ...]
    """Names of the classes, in the order of their numbers."""

    def table(self) -> list[Row]:
        """A row for each encoder."""
        return [{"encoder": one.name, "images": len(one.label), **one.numbers} for one in self.maps]

    def lines(self) -> list[str]:
        """The table as text, with the meaning of its columns."""
        return [
            *align(self.table()),
            "similarity: mean cosine of two augmentations; nearness of a class: (within classes − between) / (within"
            " images − between)",
            "outliers: augmentations whose nearest one of another image is of another class (%)",
        ]

    def figure(self) -> "Figure":
        """A panel for each encoder."""
        figure, axes = panels(1, len(self.maps), 4.0, 4.2)
        for panel, one in zip(axes[0], self.maps, strict=True):
            self._draw(panel, one)
        dots = axes[0, 0].collections[1::2]  # after the lines of each class
        names = [f" {name}" if name.startswith("_") else name for name in self.classes]  # "_" would hide it
        legend = figure.legend(
            dots, names, loc="outside lower center", ncols=6, fontsize=8, frameon=False, markerscale=2
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        return figure

    def _draw(self, panel: Any, one: AugmentationMap) -> None:
        from matplotlib.collections import LineCollection

        for number, label in enumerate(one.label.unique().tolist()):
            place = one.place[one.label == label]
            middle = place.quantile(0.5, 1, keepdim=True).expand_as(place)
            ends = torch.stack([place, middle], 2).flatten(0, 1)
            panel.add_collection(LineCollection(ends.tolist(), colors=color(number), linewidths=0.4, alpha=0.5))
            x, y = place.flatten(0, 1).T.tolist()
            panel.scatter(x, y, s=5, color=color(number), linewidths=0)
        panel.set_title(one.name, fontsize=9, wrap=True, parse_math=False)
        panel.set_aspect("equal")
        panel.set_xlim(-0.02, 1.02)
        panel.set_ylim(-0.02, 1.02)
        panel.spines[:].set_visible(False)
        panel.set_xticks([])
        panel.set_yticks([])
