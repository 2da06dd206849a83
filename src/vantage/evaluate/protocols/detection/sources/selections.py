"""Annotated sources made from others: some images of one, several in sequence, other classes.

h, w: height and width in pixels   m: selected images
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import torch
from jaxtyping import Int, UInt8
from torch import Tensor

from vantage.data.sources.source import files_of, stamp_of
from vantage.errors import DataError, UserError, quantity
from vantage.evaluate.protocols.detection.sources.annotated import AnnotatedSource, Instances, RunLengths
from vantage.storage.cache import hash_of

__all__ = ["SelectedImages", "JoinedImages", "OfClasses", "join", "with_keypoints"]


class _SourceView:
    """Images of other sources."""

    classes: tuple[str, ...]
    keypoints: Mapping[str, tuple[str, ...]]
    has_masks: bool
    _origin: Sequence[tuple[AnnotatedSource, int]]

    def __len__(self) -> int:
        return len(self._origin)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        source, index = self._origin[number]
        return source.image(index)

    def label(self, number: int) -> int | None:
        """None: an image shows any number of classes."""
        return None

    def name(self, number: int) -> str:
        """The image's name in its own source."""
        source, index = self._origin[number]
        return source.name(index)

    def size(self, number: int) -> tuple[int, int]:
        """Height and width of an image in pixels."""
        source, index = self._origin[number]
        return source.size(index)

    def instances(self, number: int) -> Instances:
        """The instances in an image."""
        source, index = self._origin[number]
        return source.instances(index)

    def masks(self, number: int) -> tuple[RunLengths, ...]:
        """The mask of each instance; raises `DataError` if the source has none."""
        source, index = self._origin[number]
        return source.masks(index)

    def files(self) -> Iterator[str]:
        """The path of each image's file, if each source has a file for each of its images."""
        sources = {id(source): source for source, _ in self._origin}
        files = {key: list(files_of(source)) for key, source in sources.items()}
        return (files[id(source)][index] for source, index in self._origin) if all(files.values()) else iter(())


class SelectedImages(_SourceView):
    """Some images of an annotated source, renumbered from 0 in this order."""

    def __init__(self, source: AnnotatedSource, numbers: Int[Tensor, "m"] | Iterable[int]) -> None:
        self.source = source
        self.numbers = torch.as_tensor(numbers if isinstance(numbers, Tensor) else list(numbers), dtype=torch.int64)
        self.classes, self.keypoints, self.has_masks = source.classes, source.keypoints, source.has_masks
        self._origin = [(source, number) for number in self.numbers.tolist()]

    def fingerprint(self) -> str:
        """A hash of the whole source's fingerprint and of the selected numbers."""
        return hash_of([self.source.fingerprint(), self.numbers.numpy().tobytes()])

    def stamp(self) -> str:
        """The stamp of the whole source."""
        return stamp_of(self.source)


class JoinedImages(_SourceView):
    """Several annotated sources of the same classes in sequence, such as trainval of VOC 2007 and of 2012."""

    def __init__(self, parts: Sequence[AnnotatedSource]) -> None:
        if len({(part.classes, tuple(sorted(part.keypoints.items()))) for part in parts}) != 1:
            raise DataError(
                "several sets were named together, but their classes differ:"
                f" {'; '.join(', '.join(part.classes[:4]) for part in parts)}. Name sets with the same classes"
            )
        self.parts = tuple(parts)
        self.classes, self.keypoints = parts[0].classes, parts[0].keypoints
        self.has_masks = all(part.has_masks for part in parts)
        self._origin = [(part, number) for part in parts for number in range(len(part))]

    def fingerprint(self) -> str:
        """A hash of the parts' fingerprints."""
        return hash_of(part.fingerprint() for part in self.parts)

    def stamp(self) -> str:
        """A hash of the parts' stamps."""
        return hash_of(map(stamp_of, self.parts))


class OfClasses(_SourceView):
    """An annotated source with other classes: labels are indices in `classes`, and other instances are left out.

    Raises `UserError` if an instance of the source has a class that is not among them, unless `leave_out` is set.
    Names of classes without instances do not matter.
    """

    def __init__(self, source: AnnotatedSource, classes: Sequence[str], leave_out: bool = False) -> None:
        self.source, self.classes = source, tuple(classes)
        self.keypoints = {name: points for name, points in source.keypoints.items() if name in self.classes}
        self.has_masks = source.has_masks
        self._origin = [(source, number) for number in range(len(source))]
        index = {name: number for number, name in enumerate(self.classes)}
        self._label = torch.tensor([index.get(name, -1) for name in source.classes] or [-1])
        if not leave_out:
            unknown = sorted({source.classes[label] for label in self._labels() if int(self._label[label]) < 0})
            if unknown:
                raise UserError(
                    f"the test images show {quantity(len(unknown), 'class', 'classes')} that the training images do not"
                    f" have ({', '.join(unknown[:5])}{' …' if unknown[5:] else ''}): name sets with the same classes"
                )

    def _labels(self) -> Iterator[int]:
        for number in range(len(self.source)):
            yield from set(self.source.instances(number).label.tolist())

    def instances(self, number: int) -> Instances:
        """The instances of these classes in an image."""
        instances = super().instances(number)
        selection = instances.of((self._label[instances.label] >= 0).nonzero().flatten())
        return replace(selection, label=self._label[selection.label])

    def masks(self, number: int) -> tuple[RunLengths, ...]:
        """The mask of each instance of these classes."""
        label = self._label[self.source.instances(number).label].tolist()
        return tuple(mask for mask, new_label in zip(self.source.masks(number), label, strict=True) if new_label >= 0)

    def fingerprint(self) -> str:
        """A hash of the source's fingerprint and of the classes."""
        return hash_of([self.source.fingerprint(), "\n".join(self.classes)])

    def stamp(self) -> str:
        """The stamp of the source."""
        return stamp_of(self.source)


def join(parts: Sequence[AnnotatedSource]) -> AnnotatedSource:
    """One source from several; classes get the order of the first if all have the same names."""
    first = parts[0]
    sources = [
        part
        if part.classes == first.classes or set(part.classes) != set(first.classes)
        else OfClasses(part, first.classes)
        for part in parts
    ]
    return first if len(parts) == 1 else JoinedImages(sources)


def with_keypoints(source: AnnotatedSource) -> AnnotatedSource:
    """A source with only the classes that have keypoints."""
    if set(source.keypoints) == set(source.classes):
        return source
    return OfClasses(source, [name for name in source.classes if name in source.keypoints], leave_out=True)
