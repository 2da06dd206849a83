"""A protocol with the images by which it judges: what one result is about, or some columns of a comparison."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

from vantage.data.sources.source import Source
from vantage.errors import UserError
from vantage.evaluate.outcome import EvaluationProtocol
from vantage.frozen.encoder import FrozenEncoder

__all__ = ["Task", "has_seed"]


@dataclass(frozen=True)
class Task:
    """A protocol, and the images by which it judges. Protocols of images of another kind have a kind of their own.

    Raises `UserError` for fewer trials than one, and for several of a protocol that draws nothing.
    """

    tools: ClassVar[tuple[str, ...]] = ()
    """Libraries on which numbers depend, beside those of every protocol."""
    pixels: ClassVar[str] = ""
    """Why raw pixels cannot be judged; nothing where they can."""

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

    def __post_init__(self) -> None:
        if self.trials < 1:
            raise UserError(f"{self.protocol.name}: {self.trials} trials were asked for; give 1 or more")
        if self.trials > 1 and not has_seed(self.protocol):
            raise UserError(
                f"{self.protocol.name}: {self.trials} trials were asked for, but it draws nothing, so all would be the"
                " same: give 1"
            )

    def check(self, trained: FrozenEncoder) -> None:
        """Raises `UserError` where the protocol is known to refuse an encoder, before hours are spent on others."""

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


def has_seed(protocol: Any) -> bool:
    """Whether a protocol, or a kind of protocol, draws anything."""
    return any(f.name == "seed" for f in fields(protocol))
