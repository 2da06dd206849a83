"""What a cell can be besides a network (an experiment that measures itself), and what is measured on a network."""

from typing import Any, Protocol, runtime_checkable

from vantage.training.run import Data

__all__ = ["HasCost", "Measure", "OfAnother", "OfOtherSets", "OnSets", "Toy"]


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

    def measure_on(self, seed: int, splits: Any, work: Any) -> dict[str, float]:
        """The measured numbers by name, on a `vantage.studies.lab.sets.Split` of each set."""
        ...


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

    def __call__(self, subject: Any) -> dict[str, float]:
        """The numbers by name for one `vantage.studies.lab.measures.vectors.Subject`."""
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
