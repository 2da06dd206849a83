"""What a cell can be besides a network (an experiment that measures itself), and what is measured on a network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from vantage.encoding import Work
from vantage.frozen.encoder import FrozenEncoder
from vantage.frozen.networks import TrainedNetworks
from vantage.studies.lab.sets import Split
from vantage.training.run import Data

__all__ = ["HasCost", "Measure", "OfAnother", "OfOtherSets", "OnSets", "Subject", "Toy"]


@runtime_checkable
class Toy(Protocol):
    """An experiment without images: a frozen value whose fields are all of its settings."""

    @property
    def name(self) -> str:
        """A short name."""
        ...

    def measure(self, seed: int) -> dict[str, float]:
        """The measured numbers by name."""
        ...


@runtime_checkable
class HasCost(Protocol):
    """An experiment or a measure that says what it costs, because that is not about as much as a linear classifier."""

    @property
    def passes(self) -> float:
        """Approximate cost, in forward passes of a 32-pixel image through four convolutions."""
        ...


@runtime_checkable
class OnSets(HasCost, Protocol):
    """An experiment on image sets that trains no run, such as one on moving digits: a frozen value whose fields are all
    of its settings. `vantage.studies.lab.experiments.moving_digits` has an example."""

    @property
    def name(self) -> str:
        """A short name."""
        ...

    @property
    def version(self) -> int:
        """Raised when the same settings mean something else."""
        ...

    @property
    def sets(self) -> tuple[str, ...]:
        """Names of the sets (`vantage.studies.lab.sets`)."""
        ...

    @property
    def data(self) -> Data:
        """How many images of each set are used."""
        ...

    def measure_on(self, seed: int, splits: Sequence[Split], work: Work) -> dict[str, float]:
        """The measured numbers by name, on the images of each set."""
        ...


@dataclass(frozen=True)
class Subject:
    """What a measure works on: a network and its images."""

    encoder: FrozenEncoder
    """The frozen encoder, or a baseline."""

    networks: Callable[[], TrainedNetworks]
    """Networks with their heads, loaded when a measure needs them. Raises `UserError` if there are none."""

    split: Split
    """Training and test images."""

    seed: int
    """The cell's seed, which decides the crops and the sample of images."""

    work: Work
    """The device and the threads to use."""

    other: Callable[[str, Data], Split]
    """Opens another set by its name, with a limit on its images. Raises `UserError` if its path is not known."""

    folder: Path | None = None
    """The folder of its run; None for a baseline."""


@runtime_checkable
class Measure(Protocol):
    """What is measured on a cell's network: a frozen value."""

    @property
    def name(self) -> str:
        """A short name."""
        ...

    @property
    def version(self) -> int:
        """Raised when the same settings mean something else."""
        ...

    def __call__(self, subject: Subject) -> dict[str, float]:
        """The numbers by name."""
        ...


@runtime_checkable
class OfAnother(Measure, Protocol):
    """A measure that applies another one, and has no settings besides it."""

    @property
    def measure(self) -> Measure:
        """The other measure."""
        ...


@runtime_checkable
class OfOtherSets(Measure, Protocol):
    """A measure that uses image sets other than its cell's own; its numbers then depend on those images too."""

    @property
    def others(self) -> tuple[str, ...]:
        """Names of the sets (`vantage.studies.lab.sets`)."""
        ...

    @property
    def data(self) -> Data:
        """How many images of each set are used."""
        ...
