"""Means and standard deviations of the pixels of well-known data sets."""

from dataclasses import dataclass

from vantage.views.operations.color import Normalize


@dataclass(frozen=True)
class Statistics:
    """Mean and standard deviation of each channel over a data set, for colors from 0 to 1 unless the color space has
    another range."""

    mean: tuple[float, float, float]
    """Mean of each channel."""
    std: tuple[float, float, float]
    """Standard deviation of each channel."""

    def normalize(self) -> Normalize:
        """The operation that subtracts the mean and divides by the standard deviation."""
        return Normalize(self.mean, self.std)


IMAGENET = Statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
"""ImageNet: what published encoders were trained with."""

CIFAR10 = Statistics((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
"""CIFAR-10, with the standard deviations (averages over images) of instance discrimination's code."""

STL10 = Statistics((0.4409, 0.4279, 0.3868), (0.2683, 0.2610, 0.2687))
"""STL-10, as in the code of Wang and Isola (arXiv 2005.10242)."""
