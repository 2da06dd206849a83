"""A protocol together with its images: the subject of one result, or of some columns of a comparison."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from vantage.composition.field_types import expect
from vantage.data.sources.source import Source
from vantage.data.splits import train_and_test
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["EvaluationProtocol", "OwnTask", "Task", "check_protocol", "has_seed", "task_of"]


@runtime_checkable
class EvaluationProtocol(Protocol):
    """A frozen value that evaluates an encoder. Its fields are all of its settings; anything else that affects its
    numbers is recorded in `Outcome.how`. A change of meaning gets a new version."""

    name: ClassVar[str]
    version: ClassVar[int]

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        """Evaluate an encoder: fit on `train`, and use the labels of `test` only to score."""
        ...


class OwnTask(ABC):
    """A protocol that needs something other than one labeled set, and so builds its own task."""

    images_with: ClassVar[str] = "classes"
    """Kind of annotation of the images that the command line opens for this protocol: "classes", "masks" or "boxes"."""

    @abstractmethod
    def task(self, train: Source, test: Source | None) -> "Task":
        """This protocol with its training and test images; if `test` is omitted, some of `train` are set aside for
        testing. Raises `UserError` for images that do not suit it."""


_NEEDED = ("name", "version", "__call__")


def _accept(encoder: FrozenEncoder) -> None:
    """Accept every encoder."""


@dataclass(frozen=True)
class Task:
    """A protocol and its images.

    Raises `UserError` for fewer than one trial, and for several trials of a protocol that draws nothing at random.
    """

    protocol: EvaluationProtocol
    """The protocol."""
    train: Source
    """Images to fit on."""
    test: Source
    """Images to score on."""
    test_split: str
    """Where the test images come from."""
    trials: int = 1
    """How many times a comparison evaluates each encoder: with the protocol's seed, with seed + 1, and so on."""
    measures: tuple[str, ...] = ()
    """Measures that a comparison shows; if empty, the first one."""
    tools: tuple[str, ...] = ()
    """Libraries that the numbers depend on, besides those that every protocol uses."""
    pixels: str = ""
    """Why raw pixels cannot be evaluated; empty if they can."""
    check: Callable[[FrozenEncoder], object] = _accept
    """Raises `UserError` for an encoder that the protocol is known to refuse, before hours are spent on others."""

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UserError(f"{self.protocol.name}: trials is {self.trials}; it must be 1 or more")
        if self.trials > 1 and not has_seed(self.protocol):
            raise UserError(
                f"{self.protocol.name}: trials is {self.trials}, but this protocol draws nothing at random, so all"
                " trials would be equal: give 1"
            )

    def each_trial(self) -> tuple[EvaluationProtocol, ...]:
        """The protocol once for each trial, with the seed of that trial."""
        protocol: Any = self.protocol
        if self.trials == 1:
            return (protocol,)
        return tuple(replace(protocol, seed=protocol.seed + number) for number in range(self.trials))

    def select_measures(self, available: Mapping[str, float]) -> tuple[str, ...]:
        """The measures to show, out of those available; raises `UserError` for one that is not available."""
        for name in self.measures:
            if name not in available:
                raise UserError(
                    f"{self.protocol.name} measures {', '.join(available)} on these images, not {name!r}: choose one of"
                    " those (results so far are kept)"
                )
        return tuple(dict.fromkeys(self.measures)) or (next(iter(available)),)


def task_of(protocol: EvaluationProtocol, train: Source, test: Source | None = None) -> Task:
    """A protocol with its images: the task that it builds itself (`OwnTask`), or one labeled set, divided by
    `train_and_test`."""
    check_protocol(protocol)
    if isinstance(protocol, OwnTask):
        return protocol.task(train, test)
    return Task(protocol, *train_and_test(train, test))


def check_protocol(protocol: Any) -> None:
    """Raises `UserError` for what is no protocol, naming what one of a user's own lacks."""
    kind, lacks = type(protocol).__name__, [name for name in _NEEDED if not hasattr(protocol, name)]
    if isinstance(protocol, type) or len(lacks) == len(_NEEDED):  # a class has the same names as its values
        expect(protocol, (), "the protocol", "a value, such as vantage.evaluate.KNN()")
    if lacks:
        raise UserError(f"{kind} is not a protocol, as vantage.evaluate.KNN is: it has no {', no '.join(lacks)}")
    if not is_dataclass(protocol):
        raise UserError(f"{kind} is not a dataclass, so its settings cannot be recorded: add @dataclass(frozen=True)")
    name = getattr(protocol, "name", None)
    if not isinstance(name, str) or Path(name).name != name:
        raise UserError(f"{kind}.name is {name!r}, which files are named by: give one without a path")


def has_seed(protocol: Any) -> bool:
    """Whether a protocol, or a protocol's class, draws anything at random."""
    return any(f.name == "seed" for f in fields(protocol))
