"""A protocol with the images by which it judges: what one result is about, or some columns of a comparison."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

from vantage.data.sources.source import Source
from vantage.data.splits import train_and_test
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["EvaluationProtocol", "OwnTask", "Task", "has_seed", "task_of"]


@runtime_checkable
class EvaluationProtocol(Protocol):
    """A frozen way to judge an encoder. Its fields are all of its settings; what else shapes its numbers is told in
    `Outcome.how`. A changed meaning gets a new version."""

    name: ClassVar[str]
    version: ClassVar[int]

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Judge an encoder, fitting on `train` and looking at the labels of `test` only to count what is right."""
        ...


class OwnTask(ABC):
    """A protocol that judges by another kind of images than one labeled set: it makes its task itself."""

    @abstractmethod
    def task(self, train: Source, test: Source | None) -> "Task":
        """This protocol with the images of both sides; without `test`, some of `train` are for testing. Raises
        `UserError` for images that do not serve."""


def _accept(encoder: FrozenEncoder) -> None:
    """Every encoder will do."""


@dataclass(frozen=True)
class Task:
    """A protocol, and the images by which it judges.

    Raises `UserError` for fewer trials than one, and for several of a protocol that draws nothing.
    """

    protocol: EvaluationProtocol
    """What judges."""
    train: Source
    """Images that it fits on."""
    test: Source
    """Images that it counts on."""
    test_split: str
    """Where the test images come from."""
    trials: int = 1
    """How many times a comparison has each encoder judged: with the protocol's seed, the next, and so on."""
    measures: tuple[str, ...] = ()
    """Measures that a comparison shows; none: the one to be quoted first."""
    tools: tuple[str, ...] = ()
    """Libraries on which numbers depend, beside those of every protocol."""
    pixels: str = ""
    """Why raw pixels cannot be judged; nothing where they can."""
    check: Callable[[FrozenEncoder], object] = _accept
    """Raises `UserError` where the protocol is known to refuse an encoder, before hours are spent on others."""

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UserError(f"{self.protocol.name}: {self.trials} trials were asked for; give 1 or more")
        if self.trials > 1 and not has_seed(self.protocol):
            raise UserError(
                f"{self.protocol.name}: {self.trials} trials were asked for, but it draws nothing, so all would be the"
                " same: give 1"
            )

    def each_trial(self) -> tuple[EvaluationProtocol, ...]:
        """The protocol with the seed of each trial."""
        protocol: Any = self.protocol
        if self.trials == 1:
            return (protocol,)
        return tuple(replace(protocol, seed=protocol.seed + number) for number in range(self.trials))

    def shown(self, measured: Mapping[str, float]) -> tuple[str, ...]:
        """The measures to show of those that there are; raises `UserError` for others."""
        for name in self.measures:
            if name not in measured:
                raise UserError(
                    f"{self.protocol.name} measures {', '.join(measured)} on these images, but {name!r} was asked for:"
                    " choose among them (what was judged is kept)"
                )
        return tuple(dict.fromkeys(self.measures)) or (next(iter(measured)),)


def task_of(protocol: EvaluationProtocol, train: Source, test: Source | None = None) -> Task:
    """A protocol with its images: as it takes them itself (`OwnTask`), or those of one labeled set, as `train_and_test`
    divides them."""
    if isinstance(protocol, OwnTask):
        return protocol.task(train, test)
    return Task(protocol, *train_and_test(train, test))


def has_seed(protocol: Any) -> bool:
    """Whether a protocol, or a kind of protocol, draws anything."""
    return any(f.name == "seed" for f in fields(protocol))
