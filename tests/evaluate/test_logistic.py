"""Logistic regression against scikit-learn's, and its choice of penalty."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tiny import cpu_work, images, tiny_run
from torch import Tensor

from vantage.errors import UserError
from vantage.evaluate import LinearCached, fit_logistic
from vantage.evaluate.protocols.linear import logistic
from vantage.frozen.encoder import random_encoder
from vantage.progress import BarProgress


def data(count: int = 300) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(5)
    label = torch.randint(0, 4, (count,), generator=generator)
    means = torch.randn(4, 7, generator=generator, dtype=torch.float64)
    return means[label] + 1.5 * torch.randn(count, 7, generator=generator, dtype=torch.float64), label


@pytest.mark.parametrize("l2", [1e-3, 1e-1])
def test_the_minimum_is_that_of_scikit_learn(l2: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_ROWS", 64)  # several parts
    vector, label = data()
    mine = fit_logistic(vector, label, 4, l2, iterations=1000)
    theirs = LogisticRegression(C=1 / (l2 * len(vector)), tol=1e-10, max_iter=5000).fit(vector.numpy(), label.numpy())
    # The softmax does not tell apart biases that differ by a constant.
    centered = mine.bias - mine.bias.mean()
    np.testing.assert_allclose(mine.weight.numpy(), theirs.coef_, atol=2e-4)
    np.testing.assert_allclose(centered.numpy(), theirs.intercept_ - theirs.intercept_.mean(), atol=2e-4)
    assert np.array_equal(mine.predict(vector)[:, 0].numpy(), theirs.predict(vector.numpy()))


def test_an_earlier_fit_as_start_gives_the_same_minimum() -> None:
    vector, label = data()
    cold = fit_logistic(vector, label, 4, 1e-2, 1000)
    warm = fit_logistic(vector, label, 4, 1e-2, 1000, start=fit_logistic(vector, label, 4, 1.0))
    torch.testing.assert_close(cold.weight, warm.weight, atol=2e-4, rtol=0)


def test_the_penalty_is_chosen_without_the_test_labels(tmp_path: Path) -> None:
    encoder, train = random_encoder(tiny_run()), images(90, seed=0, noise=40)
    protocol = LinearCached(l2=(1e-4, 1e2), iterations=50)
    right = protocol(encoder, train, images(30, seed=1, noise=40), cpu_work(tmp_path))
    assert right.accuracy.top1 > 80 and right.chosen["l2"] == 1e-4
    assert isinstance(right.chosen["held_out_accuracy"], list) and len(right.chosen["held_out_accuracy"]) == 2

    other = images(30, seed=1, noise=40)
    other._labels = (other._labels + 1) % 3  # all wrong
    wrong = protocol(encoder, train, other, cpu_work(tmp_path))
    assert wrong.chosen == right.chosen and wrong.accuracy.top1 < 20


def test_one_penalty_is_not_chosen(tmp_path: Path) -> None:
    outcome = LinearCached(l2=(1e-3,))(random_encoder(tiny_run()), images(30, 0), images(9, 1), cpu_work(tmp_path))
    assert outcome.chosen == {"l2": 1e-3, "by": "the protocol"} and outcome.train_images == 30


def test_constant_features_do_no_harm() -> None:
    vector, label = data()
    padded_vector = torch.cat([vector, torch.zeros(len(vector), 1, dtype=torch.float64)], 1)
    assert fit_logistic(padded_vector, label, 4, 1e-2).weight[:, -1].abs().max() == 0


def test_invalid_settings_are_refused() -> None:
    for settings in ({"l2": ()}, {"l2": (-1.0,)}, {"iterations": 0}):
        with pytest.raises(UserError, match="linear evaluation on cached features"):
            LinearCached(**settings)


def test_the_bar_ends_when_the_fits_are_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(logistic, "fit_logistic", stopped)
    progress = BarProgress()
    work = replace(cpu_work(tmp_path), progress=progress)
    with pytest.raises(KeyboardInterrupt):
        LinearCached()(random_encoder(tiny_run()), images(60, 0), images(30, 1), work)
    assert not progress.bar.live.is_started
