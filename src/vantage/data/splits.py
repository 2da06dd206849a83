"""Labels of a source: which images have one, and which images are held out to choose or to test.

n: images   m: test images   c: classes
"""

from typing import NamedTuple, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from vantage import draws
from vantage.data.shared_files import shared_files_in_words
from vantage.data.sources.relabeled import Unlabeled
from vantage.data.sources.renumbered import RenumberedSource, check_named
from vantage.data.sources.source import Source, class_count, classes_in_words, labels_of, marks_in, refuse_path
from vantage.data.sources.subset import SourceSubset
from vantage.errors import UserError, quantity
from vantage.progress import Progress

__all__ = [
    "LabeledSplit",
    "check_apart",
    "check_classes",
    "hold_out_mask",
    "split",
    "split_to_look",
    "train_and_test",
    "with_labels",
]

_TEST_SHARE = 0.2


def with_labels(source: Source, which: str = "") -> tuple[Source, Int[Tensor, "n"]]:
    """The labeled images of a source, and their labels. Raises `UserError` if there are none; `which` begins its
    message, to say which images these are."""
    if (marks := marks_in(source)) is not None:
        raise UserError(
            "this protocol needs one class per image, but these images may show several"
            f"{classes_in_words(source, marks)}: judge them by svm or lowshot, or give a set with one class per image"
            " (a folder for each class, or a file .txt or .csv with a path and a class on each line)"
        )
    label = labels_of(source)
    if not (label >= 0).any():
        raise UserError(
            f"{which}an evaluation needs labels, but none of the {len(source)} images has one: put each of two or more"
            " classes in a folder of its own, or name the classes in a list file"
        )
    return _labeled(source, label)


def _labeled(source: Source, label: Int[Tensor, "n"]) -> tuple[Source, Int[Tensor, "m"]]:
    rows = (label >= 0).nonzero().squeeze(1)
    return (source, label) if len(rows) == len(label) else (SourceSubset(source, rows), label[rows])


def check_classes(
    label: Int[Tensor, "n"], test_label: Int[Tensor, "m"], names: tuple[str, ...], progress: Progress | None = None
) -> None:
    """Refuse, with a `UserError`, training images of only one class, and test images that are all of other classes.

    If only some test images are of classes that no training image has, they count as wrong, and `progress` gets a
    warning that lists the `names` of those classes.
    """
    classes = label.unique()
    if len(classes) < 2:
        raise UserError(
            f"all {len(label)} labeled training images are of one class, so there is nothing to distinguish: give"
            " images of two classes or more"
        )
    unknown = ~torch.isin(test_label, classes)
    if unknown.all():
        raise UserError(
            f"none of the {len(test_label)} test images is of a class that the training images have: give sets with the"
            " same classes (folders of the same names)"
        )
    if unknown.any() and progress is not None:
        missing = [names[number] if number < len(names) else str(number) for number in test_label[unknown].unique()]
        listing, count = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else ""), int(unknown.sum())
        progress.warn(
            f"no training image is of {listing}: the {quantity(count, 'test image')} (of {len(test_label)}) of"
            f" {'these classes' if len(missing) > 1 else 'this class'} count{'s' * (count == 1)} as wrong"
        )


class LabeledSplit(NamedTuple):
    """Labeled images to train classifiers on, and to score them on."""

    train: Source
    """Images to train on."""
    label: Int[Tensor, "n"]
    """Their classes."""
    test: Source
    """Images to score on."""
    test_label: Int[Tensor, "m"]
    """Their classes, which are used only for scoring."""

    @classmethod
    def of(cls, train: Source, test: Source, progress: Progress | None = None) -> "LabeledSplit":
        """The labeled images of two sources that number their classes alike. Raises `UserError` as `with_labels` and
        `check_classes` do; `progress` gets the latter's warning."""
        images = cls(*with_labels(train), *with_labels(test, "test images: "))
        check_classes(images.label, images.test_label, test.classes, progress)
        return images

    @property
    def classes(self) -> int:
        """How many classes a classifier distinguishes: those that either source names, and those of `label`. A test
        image of any other class counts as wrong."""
        return class_count(self.label, self.train, self.test)

    @property
    def trained_classes(self) -> int:
        """How many classes training images show: of more, a classifier learns only that there are none."""
        return len(self.label.unique())


@runtime_checkable
class _HasFingerprint(Protocol):
    def fingerprint(self) -> str: ...


def check_apart(train: _HasFingerprint, test: _HasFingerprint, without: str = "to hold out a fifth") -> None:
    """Raises `UserError` if the test images are the training images. `without` says what a call without any is for."""
    if train.fingerprint() == test.fingerprint():
        raise UserError(f"the test images are the training images: give another test set, or none {without}")


def hold_out_mask(
    label: Int[Tensor, "n"], share: float, seed: int, instead: str = "a separate test set"
) -> Bool[Tensor, "n"]:
    """Which images are held out: `share` of each class, drawn with `seed`; at least one, but never all of a class.
    Raises `UserError` if no class has two images; `instead` says what would make held-out images unnecessary."""
    generator = torch.Generator().manual_seed(draws.mix(seed, draws.Purpose.HELD_OUT))
    out = torch.zeros(len(label), dtype=torch.bool)
    for number in label.unique().tolist():
        members = (label == number).nonzero().squeeze(1)
        count = min(max(1, round(share * len(members))), len(members) - 1)
        out[members[torch.randperm(len(members), generator=generator)[:count]]] = True
    if not out.any():
        found = "there is only one image" if len(label) == 1 else "no class has two images"
        raise UserError(f"{found}, so none can be held out: give more images, or {instead}")
    return out


def split(source: Source, share: float = _TEST_SHARE, seed: int = 0) -> tuple[Source, Source]:
    """Training and test images from one source: `share` of each class, drawn with `seed`, is for testing, and images
    without a label are left out. If none has a label, or images may show several classes, it is `share` of all images.
    Raises `UserError` if no class has two images, and for a share that is not between 0 and 1."""
    refuse_path(source)
    if not 0 < share < 1:
        raise UserError(f"a share of {share} was to be held out for testing: give one between 0 and 1, such as 0.2")
    label = labels_of(source)
    if (label >= 0).any():
        source, label = _labeled(source, label)
    mask = hold_out_mask(label, share, seed)
    return SourceSubset(source, (~mask).nonzero().squeeze(1)), SourceSubset(source, mask.nonzero().squeeze(1))


def split_to_look(source: Source) -> tuple[Source, Source]:
    """The same, with the usual share, to look up neighbors, which needs no labels: those of images that are alone in
    their class are dropped if there are no others, and a fifth of all images is looked up."""
    label = labels_of(source)
    alone = (label >= 0).any() and int(label[label >= 0].bincount().max()) == 1
    return split(Unlabeled(source) if alone else source)


def train_and_test(train: Source, test: Source | None) -> tuple[Source, Source, str]:
    """Training images; test images, with their classes numbered as in the training images; and a phrase that says where
    the test images come from, and how many of their files are training images too. Raises `UserError` if all of them
    are, or if the test set is omitted and no image has a label."""
    if test is not None:
        check_apart(train, test)
        check_named(train, test.classes)
        return train, RenumberedSource(test, train.classes), f"a set of its own{shared_files_in_words(train, test)}"
    has_marks = marks_in(train) is not None
    train, test = split(train if has_marks else with_labels(train)[0])
    group = "the" if has_marks else "each class of the"
    return train, test, f"a fifth of {group} same {len(train) + len(test)} labeled images, drawn with seed 0"
