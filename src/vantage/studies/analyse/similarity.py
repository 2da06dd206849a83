"""How similar the augmentations of an image are: JCL's histograms of similarities and variances.

n: images   g: images of a part   a: augmentations of each   d: width of the vectors
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from vantage.data.sources.source import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.frozen.networks import TrainedNetworks, random_networks
from vantage.storage.figures import color, legend_name, panels, set_titles
from vantage.storage.tables import Row, align
from vantage.studies.analyse.augmentation import augmented_vectors, draw_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Similarities", "Similarity", "WithinImages", "within_image"]

_CUT = 4  # a histogram this many times as high as the next one is cut off, so that the others remain visible


@dataclass(frozen=True)
class WithinImages:
    """How similar the augmentations of each image are, for one encoder."""

    name: str
    """The encoder."""

    similarity: Float[Tensor, "n"]
    """Mean cosine of all a × a ordered pairs of an image's vectors, including the a self pairs."""

    variance: Float[Tensor, "n"]
    """Mean over the dimensions of the population variance of an image's vectors."""


def within_image(vector: Float[Tensor, "g a d"]) -> tuple[Float[Tensor, "g"], Float[Tensor, "g"]]:
    """Similarity and variance of each image, from unit vectors of its augmentations.

    The similarity is ‖μ‖² of their mean μ. For unit vectors the variance is then (1 − ‖μ‖²)/d, so the two histograms
    hold the same information. They are computed separately, in float64.
    """
    vector = vector.double()
    return vector.mean(1).square().sum(1), vector.var(1, correction=0).mean(1)


@dataclass(frozen=True)
class Similarity:
    """JCL's histograms (Cai et al., arXiv 2009.14776, Fig. 3 and supplement §5): for every image, the mean cosine of
    all pairs of its augmentations, and the mean of the diagonal of their covariance.

    Augmentations are the run's own; vectors are the head's outputs, of unit length. The mean is over all 32 × 32 pairs
    as in the paper, so the self pairs raise it by (1 − s)/32 above the mean s of distinct pairs. The covariance divides
    by the number of augmentations, which the paper does not state. The paper uses 32,768 images of ImageNet-100.
    """

    name: ClassVar[str] = "similarity"
    features_suffice: ClassVar[bool] = True

    images: int = 32_768
    """Number of images to analyze, drawn without replacement; all if there are fewer."""

    augmentations: int = 32
    """Augmentations of each image."""

    view: int = 0
    """Index of the run's view that makes the augmentations."""

    bins: int = 50
    """Bars of a histogram."""

    random_encoder: bool = True
    """Whether a random encoder of the first run's architecture is analyzed too."""

    seed: int = 0
    """Seed of the sample of images and of their augmentations."""

    def __post_init__(self) -> None:
        for field, least in (("images", 1), ("augmentations", 2), ("view", 0), ("bins", 2)):
            if getattr(self, field) < least:
                raise UserError(f"{field} is {getattr(self, field)}: give at least {least}")

    def __call__(self, runs: Sequence[TrainedNetworks], source: Source, work: Work) -> "Similarities":
        """Both numbers for every image and run. Raises the same errors as `augmented_vectors`."""
        encoders = [*runs, random_networks(runs[0], self.seed)] if self.random_encoder else runs
        image = draw_numbers(len(source), self.images, self.seed)
        rows = []
        for model in encoders:
            parts = augmented_vectors(model, source, image, self.view, self.augmentations, self.seed, work)
            similarity, variance = zip(*(within_image(part) for part in parts), strict=True)
            rows.append(WithinImages(model.name, torch.cat(similarity).cpu(), torch.cat(variance).cpu()))
        return Similarities(tuple(rows), self.augmentations, self.bins)


@dataclass(frozen=True)
class Similarities:
    """Similarities and variances for each encoder."""

    encoders: tuple[WithinImages, ...]
    """One for each run, and one for the random encoder if it was analyzed."""

    augmentations: int
    """Augmentations of each image."""

    bins: int = 50
    """Bars of a histogram."""

    def table(self) -> list[Row]:
        """A row for each encoder and quantity: mean, standard deviation and percentiles over the images."""
        return [
            {"encoder": one.name, "quantity": quantity, "images": len(value), **_summary(value)}
            for quantity in ("similarity", "variance")
            for one in self.encoders
            for value in (getattr(one, quantity),)
        ]

    def lines(self) -> list[str]:
        """The table as text, with the meaning of its numbers."""
        pairs = f"{self.augmentations} × {self.augmentations}"
        return [
            *align(self.table()),
            f"similarity: mean cosine of all {pairs} pairs of an image's augmentations, self pairs among them",
            "variance: mean over the dimensions of the variance of an image's vectors",
        ]

    def figure(self) -> "Figure":
        """Both histograms, each with all encoders."""
        figure, axes = panels(1, 2)
        pairs, share = (
            f"{self.augmentations} × {self.augmentations}",
            f"of {len(self.encoders[0].similarity):,} images (%)",
        )
        for panel, quantity in zip(axes[0], ("similarity", "variance"), strict=True):
            self._draw(panel, [getattr(one, quantity) for one in self.encoders])
        axes[0, 1].ticklabel_format(axis="x", style="sci", scilimits=(-2, 2), useMathText=True)
        set_titles(axes[0, 0], "Similarity within an image", f"mean cosine of {pairs} pairs", f"share {share}")
        set_titles(axes[0, 1], "Variance within an image", "mean variance of a dimension", f"share {share}")
        for panel in axes[0]:
            panel.legend(fontsize=7, title="dashed: mean", title_fontsize=7)
        return figure

    def _draw(self, panel: Any, values: list[Float[Tensor, "n"]]) -> None:
        low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
        edges = torch.linspace(low, max(high, low + 1e-9), self.bins + 1, dtype=torch.float64)
        bars = [100 * torch.histogram(value, edges).hist / len(value) for value in values]
        peaks = sorted(float(bar.max()) for bar in bars)
        limit = peaks[-1] if len(peaks) == 1 or peaks[-1] < _CUT * peaks[-2] else 1.3 * peaks[-2]
        for number, (one, value, bar) in enumerate(zip(self.encoders, values, bars, strict=True)):
            label = one.name if float(bar.max()) <= limit else f"{one.name} (cut off, up to {float(bar.max()):.0f} %)"
            panel.stairs(
                bar.numpy(), edges.numpy(), fill=True, alpha=0.35, color=color(number), label=legend_name(label)
            )
            panel.axvline(float(value.mean()), color=color(number), linewidth=1.2, linestyle="--")
        panel.set_ylim(0, 1.05 * limit)


def _summary(value: Float[Tensor, "n"]) -> dict[str, float]:
    shares = torch.tensor([0.05, 0.5, 0.95], dtype=value.dtype)
    low, middle, high = value.quantile(shares).tolist()
    mean, deviation = float(value.mean()), float(value.std(correction=0))
    return {"mean": mean, "deviation": deviation, "5%": low, "median": middle, "95%": high}
