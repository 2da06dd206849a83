"""The linear protocols: schedules, the choice of the learning rate, training images, and an unchanged backbone."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import cpu_work, images, tiny_run
from torch import Tensor, nn

from vantage import draws
from vantage.data.order import epoch_order
from vantage.data.sources.source import SourceSubset
from vantage.encoding import encode
from vantage.errors import UserError
from vantage.evaluate import LinearMoCo, LinearPyContrast
from vantage.evaluate.protocols.linear import side_by_side
from vantage.evaluate.protocols.linear.heads import Descent, Heads
from vantage.evaluate.protocols.linear.plan import normal_start, torch_start
from vantage.frozen.encoder import random_encoder
from vantage.views import Augmentation, HorizontalFlip, RandomResizedCrop

PROTOCOLS = [LinearMoCo, LinearPyContrast]


def factors(protocol: LinearMoCo | LinearPyContrast, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The factor of the learning rates that the heads get, epoch by epoch."""
    applied_factors: list[float] = []

    def step(self: Heads, features: Tensor, label: Tensor, factor: float) -> None:
        applied_factors.append(factor)

    monkeypatch.setattr(Heads, "step", step)
    protocol(random_encoder(tiny_run()), images(6, 0), images(6, 1), cpu_work(tmp_path))
    return applied_factors


def test_the_learning_rate_of_moco_falls_at_60_and_80(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [1.0] * 60 + [0.1] * 20 + [0.1**2] * 20
    assert factors(LinearMoCo(learning_rates=(30.0,)), tmp_path, monkeypatch) == pytest.approx(expected)


def test_the_learning_rate_of_pycontrast_falls_at_30_40_and_50(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [1.0] * 30 + [0.2] * 10 + [0.2**2] * 10 + [0.2**3] * 10
    assert factors(LinearPyContrast(learning_rates=(30.0,)), tmp_path, monkeypatch) == pytest.approx(expected)


def test_initial_weights_are_the_protocols() -> None:
    weight, bias = normal_start(50, 512)
    assert float(weight.std()) == pytest.approx(0.01, rel=0.05) and not bias.any()
    weight, bias = torch_start(50, 512)
    assert weight.abs().max() <= 512**-0.5 and float(weight.std()) == pytest.approx((3 * 512) ** -0.5, rel=0.05)


def test_the_reported_head_is_plain_sgd_on_all_training_images(tmp_path: Path) -> None:
    """An ordinary loop with torch's own optimizer, over the same crops, reaches the same test accuracy and weights."""
    encoder, train, test = random_encoder(tiny_run()), images(45, 0, noise=90), images(60, 1, noise=90)
    protocol = LinearMoCo(learning_rates=(0.5, 2.0), epochs=4, batch_size=10)
    all_heads: list[Heads] = []
    with pytest.MonkeyPatch.context() as patch:
        start = Heads.__init__

        def init(self: Heads, weight: Tensor, bias: Tensor, rates: tuple[float, ...], descent: Descent) -> None:
            start(self, weight, bias, rates, descent)
            all_heads.append(self)

        patch.setattr(Heads, "__init__", init)
        outcome = protocol(encoder, train, test, cpu_work(tmp_path))
    rate = outcome.chosen["learning_rate"]
    assert rate in (0.5, 2.0)

    layer = nn.Linear(12, 3)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        layer.weight.copy_(torch.randn(3, 12) * 0.01)
        layer.bias.zero_()
    optimizer = torch.optim.SGD(layer.parameters(), rate, momentum=0.9)
    normalize = encoder.view.statistics.normalize()
    view = Augmentation(RandomResizedCrop(32, (0.08, 1.0)), (HorizontalFlip(0.5), normalize))
    for epoch in range(4):
        optimizer.param_groups[0]["lr"] = rate * (1, 1, 0.1, 0.01)[epoch]
        rows = epoch_order(45, draws.mix(0, draws.Purpose.LINEAR_ORDER), epoch).split(10)
        assert [len(part) for part in rows] == [10, 10, 10, 10, 5]
        for step, part in enumerate(rows):
            generator = torch.Generator().manual_seed(draws.mix(0, draws.Purpose.LINEAR_VIEWS, epoch, step))
            views = view.batch(torch.stack([train.image(n) for n in part.tolist()]), generator)
            optimizer.zero_grad()
            nn.functional.cross_entropy(layer(encode(encoder.backbone, views)), part % 3).backward()
            optimizer.step()
    position = (0.5, 2.0).index(rate)
    torch.testing.assert_close(all_heads[0].weight[position], layer.weight.detach(), rtol=1e-4, atol=1e-5)
    assert not torch.allclose(
        all_heads[1].weight[position], layer.weight.detach(), atol=1e-3
    )  # trained without those held out
    views = encoder.view.batch(torch.stack([test.image(n) for n in range(60)]))
    right = layer(encode(encoder.backbone, views)).argmax(1) == torch.arange(60) % 3
    assert outcome.accuracy.top1 == pytest.approx(100 * float(right.double().mean()), abs=1e-6)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_learning_rate_is_chosen_without_the_test_labels(protocol, tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), images(60, 0, noise=30), images(30, 1, noise=30)
    small = protocol(learning_rates=(1e-6, 1.0, 3.0), epochs=6, batch_size=16)
    right = small(encoder, train, test, cpu_work(tmp_path))
    assert right.chosen["learning_rate"] in (1.0, 3.0) and right.accuracy.top1 > 60
    assert "6 training images held out" in str(right.chosen["by"]) and right.train_images == 60
    test._labels = (test._labels + 1) % 3
    wrong = small(encoder, train, test, cpu_work(tmp_path))
    assert wrong.chosen == right.chosen and wrong.accuracy.top1 < 40


def test_streamed_and_resident_images_give_their_own_but_repeatable_results(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), images(60, 0, noise=20), images(30, 1, noise=20)
    protocol = LinearMoCo(learning_rates=(1.0,), epochs=5, batch_size=16)
    streaming = replace(cpu_work(tmp_path), resident_bytes=0)
    first, second = (protocol(encoder, train, test, streaming) for _ in range(2))
    more = protocol(encoder, train, test, replace(streaming, num_workers=4))
    assert first == second == more and first.accuracy.top1 > 60


def test_images_of_several_sizes_are_streamed(tmp_path: Path) -> None:
    class Mixed(SourceSubset):
        def image(self, number: int) -> Tensor:
            image = super().image(number)
            return image[:, :, :-4] if number % 2 else image

    encoder, train = random_encoder(tiny_run()), Mixed(images(40, 0), range(40))
    outcome = LinearMoCo(learning_rates=(1.0,), epochs=2, batch_size=16)(
        encoder, train, images(9, 1), cpu_work(tmp_path)
    )
    assert outcome.train_images == 40


def test_a_backbone_that_changes_voids_the_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = random_encoder(tiny_run())

    def encode_carelessly(backbone: nn.Module, views: Tensor) -> Tensor:
        backbone.train()
        return backbone(views).detach()

    monkeypatch.setattr(side_by_side, "encode", encode_carelessly)
    with pytest.raises(RuntimeError, match="the backbone changed"):
        LinearMoCo(learning_rates=(1.0,), epochs=1, batch_size=16)(
            encoder, images(40, 0), images(8, 1), cpu_work(tmp_path)
        )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_invalid_settings_are_refused(protocol) -> None:
    for settings in ({"learning_rates": ()}, {"learning_rates": (0.0,)}, {"epochs": 0}, {"batch_size": 0}):
        with pytest.raises(UserError, match="linear evaluation"):
            protocol(**settings)
