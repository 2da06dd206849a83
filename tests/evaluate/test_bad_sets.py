"""Unsuitable sets, for every protocol that reads labels: errors, warnings, and what counts as wrong."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import TinyMaps, cpu_work, images, tiny_run

from vantage.data.sources.arrays import Arrays
from vantage.data.sources.renumbered import RenumberedSource
from vantage.encoders import Encoder, PerView, Shared
from vantage.encoders.heads import LinearHead
from vantage.errors import UserError
from vantage.evaluate import (
    KNN,
    PROTOCOLS,
    SVM,
    EvaluationProtocol,
    FineTune,
    FineTuneChosen,
    LinearCached,
    LinearCMC,
    LinearMoCo,
    LinearMulti,
    LinearPlaces,
    LinearPyContrast,
    LinearRing,
    LowShot,
    LowShotChosen,
    NearestNeighbor,
    Retrieval,
)
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.progress import QuietProgress
from vantage.recipes import cmc

BY_CLASS_NAME: list[EvaluationProtocol] = [
    KNN(5), NearestNeighbor(), Retrieval(5), LinearMoCo((1.0,), epochs=1), LinearPyContrast((1.0,), epochs=1),
    LinearCMC((1.0,), epochs=1), LinearRing(epochs=1), LinearMulti(epochs=1), LinearCached((1e-2,)),
    FineTune(fraction=1.0, epochs=1, batch_size=16, head_learning_rate=0.1),
    FineTuneChosen(1.0, epochs=1, batch_size=16, head_learning_rates=(0.1, 0.2)), LinearPlaces(epochs=1),
]  # fmt: skip
"""Protocols for one class per image, which may be unknown for some."""
BY_CLASS: list[EvaluationProtocol] = [
    SVM(costs=(1.0,)), LowShot((1,), 1, 1, costs=(1.0,)), LowShotChosen((1,), 1, 1, costs=(1.0,)),
]  # fmt: skip
"""Protocols with a precision for each class, which needs images of it."""

every = pytest.mark.parametrize("protocol", BY_CLASS_NAME + BY_CLASS, ids=lambda protocol: protocol.name)
naming = pytest.mark.parametrize("protocol", BY_CLASS_NAME, ids=lambda protocol: protocol.name)
by_class = pytest.mark.parametrize("protocol", BY_CLASS, ids=lambda protocol: protocol.name)


@dataclass
class Messages(QuietProgress):
    """Records warnings."""

    lines: list[str] = field(default_factory=list)

    def warn(self, text: str) -> None:
        self.lines.append(text)


def judge(
    protocol: EvaluationProtocol, train: Arrays, test: Arrays, folder: Path
) -> tuple[dict[str, float], list[str]]:
    """Measures and warnings; the test labels count the training classes by name, as in `evaluate`."""
    messages = Messages()
    outcome = protocol(
        encoder_for(protocol),
        train,
        RenumberedSource(test, train.classes),
        replace(cpu_work(folder), progress=messages),
    )
    return dict(outcome.measures), messages.lines


def encoder_for(protocol: EvaluationProtocol) -> FrozenEncoder:
    if isinstance(protocol, LinearCMC):
        pair = (Encoder(TinyMaps(1), LinearHead(8)), Encoder(TinyMaps(2), LinearHead(8)))
        return random_encoder(replace(cmc(32), encoders=PerView(pair)))
    return random_encoder(tiny_run(Shared(Encoder(TinyMaps(), LinearHead(8)))))


def with_class_names(source: Arrays, *names: str) -> Arrays:
    """The same images with names of classes."""
    labels = [names[source.label(number) or 0] for number in range(len(source))]
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(len(source))])
    return Arrays(pixels, np.array(labels), "named")


def numbered(source: Arrays, *numbers: int) -> Arrays:
    """The same images with other numbers for their classes."""
    labels = [numbers[source.label(number) or 0] for number in range(len(source))]
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(len(source))])
    return Arrays(pixels, np.array(labels), "numbered")


def test_no_protocol_is_forgotten() -> None:
    assert {type(protocol) for protocol in BY_CLASS_NAME + BY_CLASS} == set(PROTOCOLS)


@every
def test_one_class_is_refused(protocol: EvaluationProtocol, tmp_path: Path) -> None:
    train, test = with_class_names(images(12, 0, 1), "ant"), with_class_names(images(8, 1, 2), "ant", "bee")
    with pytest.raises(UserError, match="of one class|only test images show") as problem:
        judge(protocol, train, test, tmp_path)
    assert "give images of two classes" in str(problem.value) or "bee" in str(problem.value)


@every
def test_sets_without_a_common_class_are_refused(protocol: EvaluationProtocol, tmp_path: Path) -> None:
    train, test = with_class_names(images(12, 0, 2), "ant", "bee"), with_class_names(images(8, 1, 2), "cow", "dog")
    with pytest.raises(UserError, match="none of the 8 test images is of a class|only test images show cow, dog."):
        judge(protocol, train, test, tmp_path)


@naming
def test_a_class_without_training_images_counts_as_wrong_with_a_warning(
    protocol: EvaluationProtocol, tmp_path: Path
) -> None:
    train, test = (
        with_class_names(images(12, 0, 2), "ant", "bee"),
        with_class_names(images(12, 1, 4), "ant", "bee", "cow", "dog"),
    )
    measures, lines = judge(protocol, train, test, tmp_path)
    assert lines == ["no training image is of cow, dog: the 6 test images (of 12) of these classes count as wrong"]
    assert all(value <= 50 for name, value in measures.items() if name in ("top-1", "precision at 5"))
    _, lines = judge(protocol, train, with_class_names(images(8, 1, 2), "ant", "bee"), tmp_path)
    assert lines == []


@naming
def test_three_classes_with_gaps_between_their_numbers_have_no_top5(
    protocol: EvaluationProtocol, tmp_path: Path
) -> None:
    """It would always be right, however many classes the numbers leave room for."""
    train, test = (numbered(images(count, seed, 3), 0, 7, 9) for count, seed in ((30, 0), (12, 1)))
    assert len(train.classes) == 10
    measures, lines = judge(protocol, train, test, tmp_path)
    assert lines == [] and not any("top-5" in name for name in measures)


@every
def test_two_classes_of_one_name_are_scored_apart(protocol: EvaluationProtocol, tmp_path: Path) -> None:
    train, test = images(30, 0, 3), images(12, 1, 3)
    apart, _ = judge(protocol, train, test, tmp_path)
    train.classes = test.classes = ("crane", "ox", "crane")
    assert judge(protocol, train, test, tmp_path) == (apart, [])


@pytest.mark.parametrize("protocol", [Retrieval(5), SVM(costs=(1.0,))], ids=lambda protocol: protocol.name)
def test_numbers_by_class_are_complete_if_two_have_one_name(protocol: EvaluationProtocol, tmp_path: Path) -> None:
    train, test = images(30, 0, 3), images(12, 1, 3)
    train.classes = test.classes = ("crane", "ox", "crane")
    outcome = protocol(encoder_for(protocol), train, test, cpu_work(tmp_path))
    by_class = next(numbers for numbers in outcome.details.values() if isinstance(numbers, dict))
    assert list(by_class) == ["crane", "ox", "crane (2)"]


@by_class
def test_a_class_without_training_or_test_images_has_no_precision(protocol: EvaluationProtocol, tmp_path: Path) -> None:
    two, three = (
        with_class_names(images(12, 0, 2), "ant", "bee"),
        with_class_names(images(12, 1, 3), "ant", "bee", "cow"),
    )
    with pytest.raises(UserError, match=r"different classes \(only test images show cow\)"):
        judge(protocol, two, three, tmp_path)
    with pytest.raises(UserError, match="no test image shows cow, so average precision is undefined there"):
        judge(protocol, three, two, tmp_path)


@every
@pytest.mark.parametrize("position", [0, 1])
def test_images_without_labels_are_refused(protocol: EvaluationProtocol, position: int, tmp_path: Path) -> None:
    sets = [images(12, 0, 2), images(8, 1, 2)]
    pixels = np.stack([sets[position].image(number).permute(1, 2, 0).numpy() for number in range(len(sets[position]))])
    sets[position] = Arrays(pixels, None, "nameless")
    one, other = "needs labels, but none of the {} images has one", "none of the {} images is known to show a class"
    with pytest.raises(UserError, match=f"{one}|{other}".replace("{}", str((12, 8)[position]))):
        judge(protocol, sets[0], sets[1], tmp_path)


@every
def test_too_few_images_are_refused(protocol: EvaluationProtocol, tmp_path: Path) -> None:
    if isinstance(protocol, KNN | Retrieval):
        with pytest.raises(UserError, match="smaller k|choose k of at most 4"):
            judge(protocol, images(4, 0, 2), images(8, 1, 2), tmp_path)
    else:  # two images of each class can be learned
        assert judge(protocol, images(4, 0, 2), images(8, 1, 2), tmp_path)[0]


@pytest.mark.parametrize(
    ("protocol", "instead"),
    [
        (LinearCached((0.1, 1.0)), r"a single penalty \(--l2 0.01\)"),
        (LinearMoCo((1.0, 3.0), epochs=1), r"a single rate \(--learning-rates 10\)"),
        (LinearMulti(epochs=1), "a protocol with a single depth and rate"),
        (FineTuneChosen(1.0, epochs=1, head_learning_rates=(0.1, 0.2)), "finetune, whose rates are given"),
    ],
)
def test_nothing_to_choose_by_is_refused_with_advice(
    protocol: EvaluationProtocol, instead: str, tmp_path: Path
) -> None:
    """One image of each class, and a separate test set."""
    with pytest.raises(UserError, match=f"no class has two images, so none can be held out: give more .* or {instead}"):
        judge(protocol, images(3, 0, 3), images(12, 1, 3), tmp_path)


@pytest.mark.parametrize(
    "protocol", [*BY_CLASS_NAME[:3], BY_CLASS_NAME[8], *BY_CLASS], ids=lambda protocol: protocol.name
)
def test_a_diverged_network_is_reported(protocol: EvaluationProtocol, tmp_path: Path) -> None:
    encoder = encoder_for(protocol)
    next(encoder.backbone.parameters()).fill_(torch.nan)
    with pytest.raises(UserError, match="features of random encoder are not all finite: the network diverged"):
        protocol(encoder, images(12, 0, 2), images(8, 1, 2), cpu_work(tmp_path))
