"""Parts that depend on the data set or on the length of a run, anywhere in a composition."""

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, Protocol, runtime_checkable

__all__ = [
    "Fits",
    "Stretches",
    "change_all",
    "everywhere",
    "fit_all",
    "parts_of",
    "smaller_batch",
    "stretch_all",
    "versions_of",
]


@runtime_checkable
class Fits(Protocol):
    """A part whose settings depend on how many images there are."""

    def fit_to(self, images: int, batch_size: int) -> Any:
        """The same part for a data set of `images` images in batches of `batch_size`."""
        ...


@runtime_checkable
class Stretches(Protocol):
    """A part whose settings depend on how long a run is: a schedule counted in epochs."""

    def stretch(self, longer: float, finer: float) -> Any:
        """The same part for `longer` times as many epochs, with `finer` times as many steps in each."""
        ...


def everywhere(value: Any, change: Callable[[Any], Any]) -> Any:
    """A composition of parts and tuples with `change` applied to every part, from the inside out."""

    def changed(value: Any) -> Any:
        if isinstance(value, tuple):
            parts = tuple(map(changed, value))
            return parts if any(new is not old for new, old in zip(parts, value, strict=True)) else value
        if not is_dataclass(value) or isinstance(value, type):
            return value
        inside = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
        after = {name: changed(part) for name, part in inside.items()}
        changes = {name: part for name, part in after.items() if part is not inside[name]}
        return change(replace(value, **changes) if changes else value)

    return changed(value)


def parts_of(value: Any) -> Iterator[Any]:
    """A composition of parts and tuples, and every part in it, from left to right."""
    left = [value]  # one generator, since every run that is made asks for its parts
    while left:
        yield (part := left.pop())
        if isinstance(part, tuple):
            left += reversed(part)
        elif is_dataclass(part) and not isinstance(part, type):
            left += [getattr(part, f.name) for f in reversed(fields(part))]


def versions_of(value: Any) -> dict[str, int]:
    """The version of each part of a composition: 1 unless its class has a `version`, which is raised when the same
    settings come to mean something else."""
    kinds = {type(part) for part in parts_of(value) if hasattr(type(part), "__dataclass_fields__")}
    return {kind.__name__: int(getattr(kind, "version", 1)) for kind in sorted(kinds, key=lambda kind: kind.__name__)}


def fit_all(value: Any, images: int, batch_size: int) -> Any:
    """`value` with every part that depends on the data set fitted to it."""
    return change_all(value, Fits, lambda part: part.fit_to(images, batch_size))


def stretch_all(value: Any, longer: float, finer: float) -> Any:
    """`value` with every part that depends on the length of a run stretched."""
    return change_all(value, Stretches, lambda part: part.stretch(longer, finer))


def change_all(value: Any, kind: type, change: Callable[[Any], Any]) -> Any:
    """`value` with `change` applied to every part of a kind, such as a protocol."""
    # Before Python 3.12, `isinstance` takes 45 times as long, since it remembers no answer.
    return everywhere(value, lambda part: change(part) if issubclass(type(part), kind) else part)


def smaller_batch(batch_size: int, images: int, parts: int = 1) -> int:
    """A batch size that is halved until an epoch of so many images has at least 8 steps, or the batch 8 images, and is
    a multiple of `parts`."""
    least = -(-8 // parts) * parts
    while batch_size > least and batch_size * 8 > images:
        batch_size = max(least, batch_size // 2 // parts * parts)
    return batch_size
