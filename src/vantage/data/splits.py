"""The labels of a source: which images have one, and which are held out or set apart for testing.

n: images   m: test images   h, w: size of an image in pixels   c: classes
"""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int, Int8, UInt8
from torch import Tensor

from vantage import draws
from vantage.data.sources.source import Source, SourceSubset, labels_of, marks_in, stamp_of
from vantage.errors import UserError
from vantage.progress import Progress

__all__ = [
    "Renumbered",
    "check_apart",
    "check_classes",
    "held_out",
    "split",
    "train_and_test",
    "with_labels",
]

_TEST_SHARE = 0.2


def with_labels(source: Source) -> tuple[Source, Int[Tensor, "n"]]:
    """The labeled images of a source, and their labels. Raises `UserError` where there are none."""
    if marks_in(source) is not None:
        raise UserError(
            "this protocol needs one class an image, but these images are marked with several: judge them by svm or"
            " lowshot, or name a set of one class an image (a folder for each class, or a list file .txt with a path"
            " and a class on each line)"
        )
    label = labels_of(source)
    known = (label >= 0).nonzero().squeeze(1)
    if not len(known):
        raise UserError(
            f"an evaluation needs labels, but none of the {len(source)} images has one: put each of two or more"
            " classes in a folder of its own, or name the classes in a list file"
        )
    return (source, label) if len(known) == len(label) else (SourceSubset(source, known), label[known])


def check_classes(
    label: Int[Tensor, "n"], test_label: Int[Tensor, "m"], names: tuple[str, ...], progress: Progress | None = None
) -> None:
    """Refuse, with a `UserError`, training images of one class only, and test images of no class that was trained.

    A class of the test images that no training image has is no mistake: its images count as wrong, and its name, of
    the `names` that labels count, is told where there is somebody to tell.
    """
    known = label.unique()
    if len(known) < 2:
        raise UserError(
            f"all {len(label)} labeled training images are of one class, so there is nothing to tell apart: give"
            " images of two classes or more"
        )
    alien = ~torch.isin(test_label, known)
    if alien.all():
        raise UserError(
            f"none of the {len(test_label)} test images is of a class that the training images have: name sets with the"
            " same classes (a folder of each name)"
        )
    if alien.any() and progress is not None:
        lacking = [names[number] if number < len(names) else str(number) for number in test_label[alien].unique()]
        shown = ", ".join(lacking[:5]) + (" …" if len(lacking) > 5 else "")
        progress.warn(
            f"no training image is of {shown}: the {int(alien.sum())} test images of {len(lacking)} such class"
            f"{'es' if len(lacking) > 1 else ''} (of {len(test_label)}) count as wrong"
        )


@runtime_checkable
class _Fingerprinted(Protocol):
    def fingerprint(self) -> str: ...


def check_apart(train: _Fingerprinted, test: _Fingerprinted) -> None:
    """Raises `UserError` where the test images are the training images."""
    if train.fingerprint() == test.fingerprint():
        raise UserError("the test images are the training images: name another test set, or none to hold out a fifth")


def held_out(label: Int[Tensor, "n"], share: float, seed: int) -> Bool[Tensor, "n"]:
    """Which images are held out: `share` of each class, drawn with `seed`; at least one, but never the last of a
    class."""
    generator = torch.Generator().manual_seed(draws.mix(seed, 0x5917))
    out = torch.zeros(len(label), dtype=torch.bool)
    for number in label.unique().tolist():
        members = (label == number).nonzero().squeeze(1)
        count = min(max(1, round(share * len(members))), len(members) - 1)
        out[members[torch.randperm(len(members), generator=generator)[:count]]] = True
    if not out.any():
        raise UserError(
            "no class has two images, so none can be held out: give more labeled images, or a test set of its own"
        )
    return out


def split(source: Source, share: float = _TEST_SHARE, seed: int = 0) -> tuple[Source, Source]:
    """Training and test images of one labeled source: `share` of each class is for testing, drawn with `seed`; of a
    source with several classes an image, `share` of all."""
    if marks_in(source) is None:
        source, label = with_labels(source)
    else:
        label = torch.zeros(len(source), dtype=torch.int64)
    held = held_out(label, share, seed)
    return SourceSubset(source, (~held).nonzero().squeeze(1)), SourceSubset(source, held.nonzero().squeeze(1))


def train_and_test(train: Source, test: Source | None) -> tuple[Source, Source, str]:
    """Training and test images, whose labels count the classes of the training images, and where the test images come
    from. Raises `UserError` for a test set that is the training set."""
    if test is not None:
        check_apart(train, test)
        return train, Renumbered(test, train.classes), "a set of its own"
    train, test = split(train)
    of = "the" if marks_in(train) is not None else "each class of the"
    return train, test, f"a fifth of {of} same {len(train) + len(test)} labeled images, drawn with seed 0"


class Renumbered:
    """A test source whose labels count the classes of the training source, by name: a folder may lack a class that
    the other has.

    Classes that the training source does not know come after its own; their images count as wrong.
    """

    def __init__(self, source: Source, classes: tuple[str, ...]) -> None:
        self.source = source
        self.classes = (*classes, *(name for name in source.classes if name not in set(classes)))
        place = {name: number for number, name in enumerate(self.classes)}
        self._number = [place[name] for name in source.classes]

    def __len__(self) -> int:
        return len(self.source)

    def image(self, number: int) -> UInt8[Tensor, "3 h w"]:
        """One image as RGB; raises `UnreadableImage`."""
        return self.source.image(number)

    def label(self, number: int) -> int | None:
        """The number of the image's class among the training source's, or None."""
        label = self.source.label(number)
        return None if label is None else self._number[label]

    def name(self, number: int) -> str:
        """The image's name in its own source."""
        return self.source.name(number)

    def fingerprint(self) -> str:
        """The source's own: the images are the same."""
        return self.source.fingerprint()

    def stamp(self) -> str:
        """The source's own."""
        return stamp_of(self.source)

    def marks(self) -> Int8[Tensor, "n c"] | None:
        """The source's own in the order of the training source's classes; −1 for those it does not know."""
        own = marks_in(self.source)
        if own is None:
            return None
        found = torch.full((len(own), len(self.classes)), -1, dtype=torch.int8)
        found[:, self._number] = own
        return found
