"""A test set with the training set's numbers for its classes.

n: images   c: classes
"""

import torch
from jaxtyping import Int8
from torch import Tensor

from vantage.data.sources.relabeled import Relabeled
from vantage.data.sources.source import Source, class_count, distinct, labels_of, marks_in
from vantage.errors import DataError

__all__ = ["RenumberedSource", "check_named"]


class RenumberedSource(Relabeled):
    """A test source with the training source's numbers for its classes, matched by name: either source may lack a class
    that the other has. Of several classes with one name, the first is matched with the first, and so on.

    Classes that the training source does not have come after its own; their images count as wrong. Raises `DataError`
    for a label that the source does not name, unless the training source names the same classes.
    """

    def __init__(self, source: Source, classes: tuple[str, ...]) -> None:
        check_named(source, classes)
        super().__init__(source)
        numbers = {name: number for number, name in enumerate(distinct(classes))}
        self._number = [numbers.setdefault(name, len(numbers)) for name in distinct(source.classes)]
        self.classes = tuple(name for name, _ in numbers)

    def label(self, number: int) -> int | None:
        """The number of the image's class among the training source's classes, or None."""
        label = self.source.label(number)
        if label is None or label < 0:
            return None
        return self._number[label] if label < len(self._number) else label

    def marks(self) -> Int8[Tensor, "n c"] | None:
        """The source's own marks, in the order of the training source's classes; −1 for classes it does not have."""
        source_marks = marks_in(self.source)
        if source_marks is None:
            return None
        marks = torch.full((len(source_marks), len(self.classes)), -1, dtype=torch.int8)
        marks[:, self._number] = source_marks
        return marks


def check_named(source: Source, others: tuple[str, ...]) -> None:
    """Raises `DataError` for a label that `source` does not name, unless the other source names the same classes."""
    count = 0 if tuple(others) == tuple(source.classes) else class_count(labels_of(source))
    if count > len(source.classes):
        raise DataError(
            f"a label is {count - 1}, but its source names {len(source.classes)} classes, and classes of two sets are"
            " matched by name: give a name for each label in `classes`"
        )
