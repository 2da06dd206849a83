"""Settings that are not finite, and classifiers that diverge: refused by name, never reported as results."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tiny import cpu_work, images
from tiny_maps import mapped_run

from vantage.errors import UserError
from vantage.evaluate import KNN, SVM, FineTune, LinearCached, LinearMoCo, LinearMulti, LowShotChosen
from vantage.evaluate.protocols.segmentation.segmentation import Segmentation
from vantage.frozen.encoder import random_encoder

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda value: LinearMoCo(learning_rates=(1.0, value)), "learning_rates"),
        (lambda value: LinearMulti(learning_rates=(value,)), "learning_rates"),
        (lambda value: LinearCached((0.1, value)), "l2"),
        (lambda value: SVM(costs=(0.1, value)), "costs"),
        (lambda value: LowShotChosen(cost_of_one=value), "cost_of_one"),
        (lambda value: FineTune(head_learning_rate=value), "head_learning_rate"),
        (lambda value: FineTune(weight_decay=value), "weight_decay"),
        (lambda value: Segmentation(learning_rate=value), "learning_rate"),
        (lambda value: Segmentation(weight_decay=value), "weight_decay"),
        (lambda value: KNN(temperature=value), "temperature"),
    ],
)
@pytest.mark.parametrize("value", [NAN, INF, -1.0])
def test_settings_are_finite_numbers(make: Callable[[float], object], sentence: str, value: float) -> None:
    with pytest.raises(UserError, match=sentence):
        make(value)


def test_a_diverged_classifier_gives_no_result(tmp_path: Path) -> None:
    """At this learning rate a weight decay of 1 makes the weights overflow within a few steps."""
    encoder, train, test = random_encoder(mapped_run()), images(40, 0), images(8, 1)
    with pytest.raises(UserError, match=r"diverged at learning rate 1e\+10: give lower ones"):
        LinearMulti((1e10,), epochs=3, batch_size=16, weight_decay=1.0)(encoder, train, test, cpu_work(tmp_path))
    outcome = LinearMulti((1e10, 0.1), epochs=3, batch_size=16, weight_decay=1.0)(
        encoder, train, test, cpu_work(tmp_path)
    )
    assert outcome.chosen["learning_rate"] == 0.1
