"""Labels by name, and images held out."""

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import images

from vantage.data.sources.arrays import Arrays
from vantage.data.sources.renumbered import RenumberedSource
from vantage.data.sources.source import Source, class_count, class_of, labels_of
from vantage.data.splits import LabeledSplit, hold_out_mask, split, split_to_look, train_and_test, with_labels
from vantage.errors import DataError, UserError
from vantage.training.images import held_out_part, training_part
from vantage.training.run import Data


@given(st.lists(st.integers(0, 4), min_size=2, max_size=60), st.floats(0.01, 0.99), st.integers(0, 9))
def test_every_class_keeps_an_image_and_gives_its_share(labels: list[int], share: float, seed: int) -> None:
    label = torch.tensor(labels)
    counts = Counter(labels)
    if max(counts.values()) < 2:
        with pytest.raises(UserError, match="no class has two images"):
            hold_out_mask(label, share, seed)
        return
    mask = hold_out_mask(label, share, seed)
    assert torch.equal(mask, hold_out_mask(label, share, seed))
    count_of_class = Counter(label[mask].tolist())
    for number, count in counts.items():
        assert count_of_class[number] == min(max(1, round(share * count)), count - 1)


def test_another_seed_holds_out_others() -> None:
    label = torch.arange(100) % 4
    assert not torch.equal(hold_out_mask(label, 0.5, 0), hold_out_mask(label, 0.5, 1))


def test_a_fifth_of_each_class_is_for_testing() -> None:
    train, test = split(images(150, seed=0))
    assert (len(train), len(test)) == (120, 30)
    assert not {train.name(n) for n in range(120)} & {test.name(n) for n in range(30)}
    assert Counter(test.label(n) for n in range(30)) == {0: 10, 1: 10, 2: 10}


def rows_of(source: Source) -> list[int]:
    return [int(source.name(number).removeprefix("row ")) for number in range(len(source))]


@pytest.mark.parametrize(
    ("labels", "left_out", "test"),
    [([0, 1, 2], [], [0, 13, 14]), ([0, 1, -1], [2, 5, 8, 11, 14], [0, 13]), ([-1, -1, -1], [], [6, 10, 12])],
)
def test_the_images_drawn_for_testing_stay_the_same(labels: list[int], left_out: list[int], test: list[int]) -> None:
    source = Arrays(np.zeros((15, 4, 4), np.uint8), np.array(labels * 5), "rows")
    first, second = split(source)
    assert rows_of(second) == test
    assert sorted([*rows_of(first), *test, *left_out]) == list(range(15))
    assert rows_of(held_out_part(source, Data(hold_out=0.2))) == test
    assert rows_of(training_part(source, Data(hold_out=0.2))) == sorted(set(range(15)) - set(test))


def test_only_labels_that_images_share_matter_to_looking_up_neighbors() -> None:
    pixels = np.arange(480, dtype=np.uint16).astype(np.uint8).reshape(10, 4, 4, 3)
    alone = Arrays(pixels, np.arange(10), "alone")
    bank, query = split_to_look(alone)
    assert (len(bank), len(query)) == (8, 2) and not (labels_of(bank) >= 0).any() and bank.classes == ()
    names = [alone.name(number) for number in range(10)]
    assert torch.equal(query.image(0), alone.image(names.index(query.name(0))))
    shared = Arrays(pixels, np.array([0, 0, *range(1, 9)]), "shared")
    assert [labels_of(part).tolist() for part in split_to_look(shared)] == [
        labels_of(p).tolist() for p in split(shared)
    ]


def test_a_single_image_cannot_be_divided() -> None:
    with pytest.raises(UserError, match="there is only one image, so none can be held out: give more images"):
        split(images(1, seed=0))
    with pytest.raises(UserError, match="none of the 5 images has one"):
        train_and_test(Arrays(np.zeros((5, 4, 4), np.uint8), None, "none"), None)


def source_of_names(names: list[str]) -> Arrays:
    return Arrays(np.zeros((len(names), 4, 4), np.uint8), np.array(names), "words")


def test_test_labels_count_the_training_classes_by_name() -> None:
    train, test = source_of_names(["ant", "bee", "cow", "dog"]), source_of_names(["bee", "dog", "elk"])
    renumbered = RenumberedSource(test, train.classes)
    assert renumbered.classes == ("ant", "bee", "cow", "dog", "elk")
    assert [renumbered.label(n) for n in range(3)] == [1, 3, 4]
    assert (
        renumbered.fingerprint() == test.fingerprint()
        and renumbered.name(2) == "row 2"
        and renumbered.image(0).shape == (3, 4, 4)
    )


class OwnSource(Arrays):
    """A source of a user, with any names and labels."""

    def __init__(self, classes: tuple[str, ...], labels: list[object]) -> None:
        super().__init__(np.full((len(labels), 4, 4), len(classes), np.uint8), None, "own")
        self.classes, self.labels = classes, labels

    def label(self, number: int) -> Any:
        return self.labels[number]


def test_classes_of_one_name_are_matched_in_their_order() -> None:
    """ImageNet has two classes called crane."""
    train, test = OwnSource(("crane", "ox", "crane"), [0, 1, 2]), OwnSource(("crane", "ape", "crane"), [0, 1, 2])
    assert [RenumberedSource(train, train.classes).label(n) for n in range(3)] == [0, 1, 2]
    renumbered = RenumberedSource(test, train.classes)
    assert [renumbered.label(n) for n in range(3)] == [0, 3, 2]
    assert renumbered.classes == ("crane", "ox", "crane", "ape")


def test_labels_of_an_own_source_are_never_taken_for_another_class() -> None:
    train, nameless = OwnSource(("a", "b"), [0, 1, 1]), OwnSource((), [0, 1])
    assert labels_of(RenumberedSource(OwnSource(("b", "a"), [-1, 0, None]), train.classes)).tolist() == [-1, 1, -1]
    assert class_of(OwnSource(("a", "b"), [-1]), 0) == ""
    assert labels_of(RenumberedSource(nameless, ())).tolist() == [0, 1], "both number their classes alike"
    for pair in ((train, nameless), (nameless, train)):
        with pytest.raises(DataError, match="a label is 1, but its source names 0 classes, and classes of two sets"):
            train_and_test(*pair)
    for label in ("a", 0.0):
        with pytest.raises(DataError, match=f"OwnSource gives the label {label!r}: give the number of the class"):
            labels_of(OwnSource(("a",), [0, label]))


def test_images_without_labels_are_left_out_or_refused() -> None:
    source, label = with_labels(Arrays(np.zeros((5, 4, 4), np.uint8), np.array([1, -1, 0, -1, 1]), "some"))
    assert label.tolist() == [1, 0, 1] and [source.name(n) for n in range(3)] == ["row 0", "row 2", "row 4"]
    none = Arrays(np.zeros((5, 4, 4), np.uint8), None, "none")
    with pytest.raises(UserError, match="none of the 5 images has one"):
        with_labels(none)
    with pytest.raises(UserError, match="^test images: an evaluation needs labels, but none of the 5 images has one"):
        LabeledSplit.of(source, none)


@pytest.mark.parametrize(
    ("train", "test", "classes"),
    [(["ant", "bee", "cow"], ["bee", "ant"], 3), (["ant", "bee"], ["bee", "dog", "elk"], 4)],
)
def test_classes_of_either_set_are_distinguished(train: list[str], test: list[str], classes: int) -> None:
    first = source_of_names(train)
    pair = LabeledSplit.of(first, RenumberedSource(source_of_names(test), first.classes))
    assert pair.classes == classes
    assert class_count(pair.label, first) == len(train)
    assert class_count(torch.tensor([7, -1]), first) == 8 and class_count(torch.tensor([-1]), first) == len(train)
    with pytest.raises(UserError, match="are of one class"):
        LabeledSplit.of(source_of_names(["ant", "ant"]), first)
