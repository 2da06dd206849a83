"""Classifiers trained side by side equal those that each learning rate alone would give."""

import itertools

import pytest
import torch
from torch import Tensor, nn

from vantage.evaluate import Heads

RATES = [0.1, 1.0, 10.0, 0.01, 1.0]
"""Two are equal, and 1.0 and 10.0 are those that a name without the dot would confuse."""


def batches(dtype: torch.dtype = torch.float64) -> list[tuple[Tensor, Tensor]]:
    generator = torch.Generator().manual_seed(3)
    means = torch.randn(4, 6, generator=generator, dtype=dtype)
    result = []
    for _ in range(30):
        label = torch.randint(0, 4, (17,), generator=generator)
        result.append((means[label] + torch.randn(17, 6, generator=generator, dtype=dtype), label))
    return result


def alone(rate: float, weight: Tensor, bias: Tensor, factors: list[float]) -> nn.Linear:
    """torch's own SGD on one classifier."""
    layer = nn.Linear(6, 4, dtype=weight.dtype)
    with torch.no_grad():
        layer.weight.copy_(weight)
        layer.bias.copy_(bias)
    optimizer = torch.optim.SGD(layer.parameters(), rate, momentum=0.9)
    for (features, label), factor in zip(batches(weight.dtype), factors, strict=True):
        optimizer.param_groups[0]["lr"] = rate * factor
        optimizer.zero_grad()
        nn.functional.cross_entropy(layer(features), label).backward()
        optimizer.step()
    return layer


def start(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    return 0.3 * torch.randn(4, 6, dtype=dtype), 0.3 * torch.randn(4, dtype=dtype)


def test_each_head_equals_sgd_of_torch_at_its_learning_rate() -> None:
    weight, bias = start()
    factors = [1.0] * 10 + [0.1] * 10 + [0.01] * 10
    heads = Heads(weight, bias, RATES)
    for (features, label), factor in zip(batches(), factors, strict=True):
        heads.step(features, label, factor)
    for position, rate in enumerate(RATES):
        layer = alone(rate, weight, bias, factors)
        torch.testing.assert_close(heads.weight[position], layer.weight.detach(), rtol=1e-9, atol=1e-12)
        torch.testing.assert_close(heads.bias[position], layer.bias.detach(), rtol=1e-9, atol=1e-12)
    for one, other in itertools.combinations(range(len(RATES)), 2):
        # Heads of one product may be rounded differently, depending on how the processor's library divides it.
        distance = float((heads.bias[one] - heads.bias[other]).abs().max())
        assert distance < 1e-9 if RATES[one] == RATES[other] else distance > 1e-3


def test_a_learning_rate_gives_the_same_alone_and_among_others() -> None:
    weight, bias = start(torch.float32)
    together, single = Heads(weight, bias, RATES), Heads(weight, bias, [0.1])
    for features, label in batches(torch.float32):
        together.step(features, label, 1.0)
        single.step(features, label, 1.0)
    torch.testing.assert_close(together.weight[0], single.weight[0], rtol=1e-5, atol=1e-6)


def test_a_learning_rate_moves_its_head_in_proportion() -> None:
    weight, bias = start()
    heads = Heads(weight, bias, [0.1, 1.0, 10.0])
    features, label = batches()[0]
    heads.step(features, label, 1.0)
    distance = (heads.weight - weight).abs().amax((1, 2))
    assert distance[1] / distance[0] == pytest.approx(10) and distance[2] / distance[1] == pytest.approx(10)


def test_a_diverging_head_does_not_disturb_the_others() -> None:
    weight, bias = start(torch.float32)
    heads = Heads(weight, bias, [0.1, 1e38])
    for features, label in batches(torch.float32):
        heads.step(features, label, 1.0)
    features, label = batches(torch.float32)[0]
    good, bad = heads.accuracies(features, label)
    assert not heads.weight[1].isfinite().all() and heads.weight[0].isfinite().all()
    assert good > 60 and bad == 0


def test_an_empty_batch_changes_nothing() -> None:
    weight, bias = start()
    heads = Heads(weight, bias, RATES)
    heads.step(torch.empty(0, 6, dtype=torch.float64), torch.empty(0, dtype=torch.int64), 1.0)
    assert torch.equal(heads.weight, weight.expand(5, -1, -1))


def test_accuracies_and_predictions_agree() -> None:
    heads = Heads(*start(), RATES)
    for features, label in batches():
        heads.step(features, label, 1.0)
    features, label = batches()[5]
    for position, share in enumerate(heads.accuracies(features, label)):
        guess = heads.predict(position, features)
        assert guess.shape == (17, 4)
        assert share == pytest.approx(100 * float((guess[:, 0] == label).double().mean()))
