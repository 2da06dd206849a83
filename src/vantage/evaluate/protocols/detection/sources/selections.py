"""Annotated sources made of others: some images of one, several one after the other, other classes.

h, w: height and width in pixels   m: images chosen
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from vantage.errors import DataError, UserError
from vantage.evaluate.protocols.detection.sources.annotated import Annotated, Instances, RunLengths
from vantage.storage.cache import hash_of

__all__ = ["SelectedImages", "JoinedImages", "OfClasses", "join", "with_keypoints"]


class _Placed:
    """Images that lie in other sources."""

    classes: tuple[str, ...]
    keypoints: Mapping[str, tuple[str, ...]]
    has_masks: bool
    _place: Sequence[tuple[Annotated, int]]

    def __len__(self) -> int:
        return len(self._place)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        source, inside = self._place[number]
        return source.image(inside)

    def label(self, number: int) -> int | None:
        """None: an image shows any number of classes."""
        return None

    def name(self, number: int) -> str:
        """The name that the image has in its own source."""
        source, inside = self._place[number]
        return source.name(inside)

    def size(self, number: int) -> tuple[int, int]:
        """Height and width of an image in pixels."""
        source, inside = self._place[number]
        return source.size(inside)

    def instances(self, number: int) -> Instances:
        """What an image shows."""
        source, inside = self._place[number]
        return source.instances(inside)

    def masks(self, number: int) -> tuple[RunLengths, ...]:
        """The pixels of each instance; raises `DataError` where the source has none."""
        source, inside = self._place[number]
        return source.masks(inside)


class SelectedImages(_Placed):
    """Some images of an annotated source, renumbered from 0 in the order given."""

    def __init__(self, source: Annotated, numbers: Int[Tensor, "m"] | Iterable[int]) -> None:
        self.source = source
        self.numbers = torch.as_tensor(numbers if isinstance(numbers, Tensor) else list(numbers), dtype=torch.int64)
        self.classes, self.keypoints, self.has_masks = source.classes, source.keypoints, source.has_masks
        self._place = [(source, number) for number in self.numbers.tolist()]

    def fingerprint(self) -> str:
        """A hash of the whole source's fingerprint and of the numbers chosen."""
        return hash_of([self.source.fingerprint().encode(), self.numbers.numpy().tobytes()])


class JoinedImages(_Placed):
    """Several annotated sources of the same classes, one after the other, as trainval of VOC 2007 and of 2012."""

    def __init__(self, parts: Sequence[Annotated]) -> None:
        if len({(part.classes, tuple(sorted(part.keypoints.items()))) for part in parts}) != 1:
            raise DataError(
                "several sets were named together, but their classes differ:"
                f" {'; '.join(', '.join(part.classes[:4]) for part in parts)}. Name sets of the same classes"
            )
        self.parts = tuple(parts)
        self.classes, self.keypoints = parts[0].classes, parts[0].keypoints
        self.has_masks = all(part.has_masks for part in parts)
        self._place = [(part, number) for part in parts for number in range(len(part))]

    def fingerprint(self) -> str:
        """A hash of the parts' fingerprints."""
        return hash_of(part.fingerprint().encode() for part in self.parts)


class OfClasses:
    """An annotated source with other classes: instances of the others are left out, labels count in `classes`.

    Raises `UserError` where an instance of the source shows a class that is not among them and `leave_out` is not
    said: names of classes that no instance has do no harm.
    """

    def __init__(self, source: Annotated, classes: Sequence[str], leave_out: bool = False) -> None:
        self.source, self.classes = source, tuple(classes)
        self.keypoints = {name: points for name, points in source.keypoints.items() if name in self.classes}
        self.has_masks = source.has_masks
        place = {name: number for number, name in enumerate(self.classes)}
        self._label = torch.tensor([place.get(name, -1) for name in source.classes] or [-1])
        if not leave_out:
            alien = sorted({source.classes[label] for label in self._shown() if int(self._label[label]) < 0})
            if alien:
                raise UserError(
                    f"the test images show {len(alien)} classes that the training images do not name"
                    f" ({', '.join(alien[:5])}{' …' if alien[5:] else ''}): name sets of the same classes"
                )

    def _shown(self) -> Iterator[int]:
        for number in range(len(self.source)):
            yield from set(self.source.instances(number).label.tolist())

    def __len__(self) -> int:
        return len(self.source)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return self.source.image(number)

    def label(self, number: int) -> int | None:
        """None: an image shows any number of classes."""
        return None

    def name(self, number: int) -> str:
        """The name that the image has in the source."""
        return self.source.name(number)

    def size(self, number: int) -> tuple[int, int]:
        """Height and width of an image in pixels."""
        return self.source.size(number)

    def instances(self, number: int) -> Instances:
        """What an image shows of the classes asked for."""
        found = self.source.instances(number)
        known = found.of((self._label[found.label] >= 0).nonzero().flatten())
        return replace(known, label=self._label[known.label])

    def masks(self, number: int) -> tuple[RunLengths, ...]:
        """The pixels of each instance of the classes asked for."""
        label = self._label[self.source.instances(number).label].tolist()
        return tuple(mask for mask, own in zip(self.source.masks(number), label, strict=True) if own >= 0)

    def fingerprint(self) -> str:
        """A hash of the source's fingerprint and of the classes."""
        return hash_of([self.source.fingerprint().encode(), "\n".join(self.classes).encode()])


def join(parts: Sequence[Annotated]) -> Annotated:
    """One source of several; classes are put in the order of the first, where all name the same."""
    first = parts[0]
    same = [
        part
        if part.classes == first.classes or set(part.classes) != set(first.classes)
        else OfClasses(part, first.classes)
        for part in parts
    ]
    return first if len(parts) == 1 else JoinedImages(same)


def with_keypoints(source: Annotated) -> Annotated:
    """What a source shows of the classes that have keypoints."""
    if set(source.keypoints) == set(source.classes):
        return source
    return OfClasses(source, [name for name in source.classes if name in source.keypoints], leave_out=True)
