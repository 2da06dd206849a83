"""Linear protocols of CMC, Ring and InterCLR: each against a plain loop with torch's own layers and optimizer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny import cpu_work, images
from tiny_maps import Mapped, mapped_run, plainly, two_run
from torch import Tensor, nn

from vantage import draws
from vantage.data.order import epoch_order
from vantage.data.sources.arrays import Arrays
from vantage.evaluate import LinearCMC, LinearMoCo, LinearMulti, LinearRing
from vantage.evaluate.protocols.linear import side_by_side
from vantage.evaluate.protocols.linear.depths import statistics_of
from vantage.evaluate.protocols.linear.side_by_side import Classifiers
from vantage.frozen.encoder import FrozenEncoder, random_encoder, raw_pixels
from vantage.frozen.feature_cache import features_in_parts
from vantage.storage import state as kept_state
from vantage.views import Augmentation, ColorJitter, HorizontalFlip, Lighting, RandomResizedCrop, Statistics
from vantage.views.operations.operation import Operation


@pytest.fixture
def all_classifiers(monkeypatch: pytest.MonkeyPatch) -> list[Classifiers]:
    """All classifiers in the order they are built: those of all training images first."""
    instances: list[Classifiers] = []
    start = Classifiers.__init__

    def init(self, *arguments) -> None:
        start(self, *arguments)
        instances.append(self)

    monkeypatch.setattr(Classifiers, "__init__", init)
    return instances


def views_of(
    source: Arrays, batch: int, area: float, operations: tuple[Operation, ...]
) -> Callable[[int], list[tuple[Tensor, Tensor]]]:
    """The crops of an epoch, computed plainly, with labels."""
    view = Augmentation(RandomResizedCrop(32, (area, 1.0)), (HorizontalFlip(0.5), *operations))

    def epoch(number: int) -> list[tuple[Tensor, Tensor]]:
        parts = epoch_order(len(source), draws.mix(0, draws.Purpose.LINEAR_ORDER), number).split(batch)
        batches = []
        for step, rows in enumerate(parts):
            generator = torch.Generator().manual_seed(draws.mix(0, draws.Purpose.LINEAR_VIEWS, number, step))
            label = torch.tensor([source.label(row) for row in rows.tolist()])
            batches.append((view.batch(torch.stack([source.image(row) for row in rows.tolist()]), generator), label))
        return batches

    return epoch


@torch.no_grad()
def test_ring_is_sgd_at_one_learning_rate_on_the_deepest_map_of_images_normalized_by_their_own_statistics(
    tmp_path: Path, all_classifiers: list[Classifiers]
) -> None:
    encoder, train, test = random_encoder(mapped_run()), images(30, 0), images(24, 1)
    outcome = LinearRing(epochs=3, batch_size=8)(encoder, train, test, cpu_work(tmp_path))

    pixels = torch.stack([train.image(number) for number in range(30)]).double() / 255
    mean, std = pixels.mean((0, 2, 3)), pixels.std((0, 2, 3), correction=0)
    normalize = Statistics(tuple(mean.tolist()), tuple(std.tolist())).normalize()
    assert outcome.details["mean"] == pytest.approx(mean.tolist(), abs=1e-6)
    assert outcome.details["std"] == pytest.approx(std.tolist(), abs=1e-6)
    assert outcome.details["features"] == 6 * 4 * 4 and outcome.chosen == {"learning_rate": 0.01, "by": "the protocol"}

    torch.manual_seed(0)
    layer = nn.Linear(96, 3)
    epochs = views_of(train, 8, 0.2, (normalize,))
    network = encoder.backbone
    assert isinstance(network, Mapped)
    with torch.enable_grad():
        plainly(
            layer,
            torch.optim.SGD(layer.parameters(), 0.01, momentum=0.9),
            [0.01] * 3,
            lambda epoch: [(network.maps(views)[-1].flatten(1), label) for views, label in epochs(epoch)],
        )
    torch.testing.assert_close(all_classifiers[0].heads[0].weight[0], layer.weight.detach(), rtol=1e-4, atol=1e-6)
    rgb = torch.stack([test.image(number) for number in range(24)]) / 255
    logits = layer(network.maps(normalize.apply(rgb, torch.empty(24, 0)))[-1].flatten(1))
    right = logits.argmax(1) == torch.arange(24) % 3
    assert outcome.accuracy.top1 == pytest.approx(100 * float(right.double().mean()))


@pytest.mark.slow
def test_multi_is_nesterov_with_decay_on_normalized_maps_of_each_depth(
    tmp_path: Path, all_classifiers: list[Classifiers]
) -> None:
    encoder, train, test = random_encoder(mapped_run()), images(40, 0), images(24, 1)
    protocol = LinearMulti(learning_rates=(0.05,), epochs=10, batch_size=9, weight_decay=0.01)
    outcome = protocol(encoder, train, test, cpu_work(tmp_path))
    changes = (ColorJitter(0.4, 0.4, 0.4, 0.0), Lighting(0.1), *encoder.view.operations)
    epochs = views_of(train, 9, 0.08, changes)
    network = encoder.backbone
    assert isinstance(network, Mapped)
    torch.manual_seed(0)
    starts = [torch.randn(3, 4 * 9) * 0.01, torch.randn(3, 6 * 4) * 0.01]
    pixels = encoder.view.finish(torch.stack([test.image(number) for number in range(24)]))
    for depth, (grid, channels, start) in enumerate(zip((3, 2), (4, 6), starts, strict=True)):
        pool = nn.AdaptiveAvgPool2d(grid)
        classifier = nn.Linear(channels * grid**2, 3)
        with torch.no_grad():
            classifier.weight.copy_(start)
            classifier.bias.zero_()
        layer = nn.Sequential(nn.BatchNorm2d(channels, affine=False), nn.Flatten(), classifier)
        plainly(
            layer,
            torch.optim.SGD(layer.parameters(), 0.05, momentum=0.9, nesterov=True, weight_decay=0.01),
            [0.05] * 3 + [0.005] * 3 + [0.0005] * 3 + [0.00005],
            lambda epoch, depth=depth, pool=pool: [
                (pool(network.maps(views)[depth]).detach(), label) for views, label in epochs(epoch)
            ],
        )
        torch.testing.assert_close(
            all_classifiers[0].heads[depth].weight[0], classifier.weight.detach(), rtol=2e-3, atol=2e-5
        )
        right = layer.eval()(pool(network.maps(pixels)[depth])).argmax(1) == torch.arange(24) % 3
        assert outcome.measures[f"depth {depth + 1} top-1"] == pytest.approx(100 * float(right.double().mean()))
        assert not torch.allclose(
            all_classifiers[1].heads[depth].weight[0], classifier.weight, atol=1e-3
        )  # less those held out


def test_multi_reports_the_depth_chosen_on_held_out_images_and_names_the_best_on_test_images(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(mapped_run()), images(60, 0, noise=90), images(30, 1, noise=90)
    protocol = LinearMulti(learning_rates=(1e-5, 0.05), epochs=4, batch_size=16)
    outcome = protocol(encoder, train, test, cpu_work(tmp_path))
    depth = str(outcome.chosen["depth"])
    assert outcome.measures["top-1"] == outcome.measures[f"{depth} top-1"]
    each = [outcome.measures["depth 1 top-1"], outcome.measures["depth 2 top-1"]]
    assert outcome.measures["best on the test images top-1"] == max(each)
    accuracies = outcome.chosen["held_out_accuracy"]
    assert isinstance(accuracies, list) and depth == f"depth {2 - accuracies[::-1].index(max(accuracies))}"
    assert outcome.details["learning rate of each depth"] == [0.05, 0.05]
    test._labels = (test._labels + 1) % 3  # the choice does not see them
    assert protocol(encoder, train, test, cpu_work(tmp_path)).chosen == outcome.chosen


def test_cmc_joins_the_features_of_both_encoders(tmp_path: Path, all_classifiers: list[Classifiers]) -> None:
    encoder, train, test = random_encoder(two_run()), images(30, 0), images(24, 1)
    outcome = LinearCMC(learning_rates=(3.0,), epochs=6, batch_size=8)(encoder, train, test, cpu_work(tmp_path))
    light, color = (random_encoder(two_run(), network=number) for number in (0, 1))
    epochs = views_of(train, 8, 0.2, encoder.view.operations)
    torch.manual_seed(0)
    layer = nn.Linear(11, 3)
    with torch.no_grad():
        torch.manual_seed(0)
        layer.weight.copy_(torch.randn(3, 11) * 0.01)
        layer.bias.zero_()

    @torch.no_grad()
    def joint_features(views: Tensor) -> Tensor:
        return torch.cat([light.backbone(views[:, :1]), color.backbone(views[:, 1:])], 1)

    rates = [3.0, 3.0, 3.0, 0.6, 0.12, 0.024]
    plainly(
        layer,
        torch.optim.SGD(layer.parameters(), 3.0, momentum=0.9),
        rates,
        lambda epoch: [(joint_features(views), label) for views, label in epochs(epoch)],
    )
    torch.testing.assert_close(all_classifiers[0].heads[0].weight[0], layer.weight.detach(), rtol=1e-3, atol=1e-4)
    assert outcome.train_images == 30


@pytest.mark.parametrize("protocol", [LinearRing(epochs=2, batch_size=16), LinearMulti(epochs=2, batch_size=16)])
def test_two_encoders_show_their_maps_together_and_raw_pixels_are_a_baseline(protocol, tmp_path: Path) -> None:
    train, test = images(20, 0), images(10, 1)
    both = protocol(random_encoder(two_run()), train, test, cpu_work(tmp_path))
    pixels = protocol(raw_pixels(mapped_run()), train, test, cpu_work(tmp_path))
    assert both.test_images == pixels.test_images == 10
    if isinstance(protocol, LinearRing):
        assert both.details["features"] == 11 * 4 * 4 and pixels.details["features"] == 3 * 32 * 32
    else:
        assert [depth["channels"] for depth in both.details["depths"]] == [8, 11]
        assert list(pixels.measures) == ["top-1", "pixels top-1", "best on the test images top-1"]


def test_features_that_do_not_fit_are_recomputed_and_equal(tmp_path: Path) -> None:
    encoder, source = random_encoder(mapped_run()), images(37, 0)
    room = cpu_work(tmp_path)
    none = replace(room, cache=tmp_path / "none", resident_bytes=0)
    cached, streamed_features = (torch.cat(list(features_in_parts(encoder, source, choice))) for choice in (room, none))
    torch.testing.assert_close(cached, streamed_features, rtol=0, atol=0)
    assert list((tmp_path / "cache").rglob("*.npy")) and not (tmp_path / "none").exists()


def test_statistics_are_those_of_the_space_that_the_networks_see(tmp_path: Path) -> None:
    encoder = random_encoder(two_run())
    assert encoder.view.channels == (0, 1, 2)
    statistics = statistics_of(encoder, images(20, 0), cpu_work(tmp_path))
    pixels = torch.stack([images(20, 0).image(number) for number in range(20)])
    values = encoder.view.space.convert(pixels / 255).double()
    assert list(statistics.mean) == pytest.approx(values.mean((0, 2, 3)).tolist(), rel=1e-5)
    assert list(statistics.std) == pytest.approx(values.std((0, 2, 3), correction=0).tolist(), rel=1e-5)


def test_the_encoder_keeps_its_own_view(tmp_path: Path) -> None:
    """The protocols change the statistics of a copy, never of the encoder itself."""
    encoder: FrozenEncoder = random_encoder(mapped_run())
    before = (encoder.view, encoder.digest())
    LinearRing(epochs=1, batch_size=8)(encoder, images(12, 0), images(6, 1), cpu_work(tmp_path))
    LinearMulti(epochs=1, batch_size=8)(encoder, images(12, 0), images(6, 1), cpu_work(tmp_path))
    assert (encoder.view, encoder.digest()) == before


@pytest.mark.parametrize(
    "protocol",
    [LinearMoCo((0.5, 2.0), epochs=4, batch_size=16), LinearMulti((0.1, 0.3), epochs=4, batch_size=16)],
    ids=lambda protocol: protocol.name,
)
def test_a_resumed_training_equals_an_uninterrupted_one(protocol, all_classifiers, tmp_path: Path, monkeypatch) -> None:
    """Weights, velocities and BatchNorm's statistics to the bit; finished epochs are not repeated."""
    encoder, train, test = random_encoder(mapped_run()), images(40, 0, noise=60), images(20, 1, noise=60)
    expected = protocol(encoder, train, test, cpu_work(tmp_path / "whole"))
    states = [one.tensors() for one in all_classifiers]
    monkeypatch.setattr(kept_state, "MINUTES", -1.0)
    encode, calls = side_by_side.encode, list[int]()

    def stopping(backbone: nn.Module, views: Tensor) -> Tensor:
        calls.append(len(views))
        if len(calls) == 8:  # in the third epoch of three steps
            raise KeyboardInterrupt
        return encode(backbone, views)

    monkeypatch.setattr(side_by_side, "encode", stopping)
    with pytest.raises(KeyboardInterrupt):
        protocol(encoder, train, test, cpu_work(tmp_path / "cut"))
    (state,) = (tmp_path / "cut" / "cache" / "linear").iterdir()
    outcome = protocol(encoder, train, test, cpu_work(tmp_path / "cut"))
    assert outcome == expected and len(calls) == 8 + 6 and not state.exists()
    for one, whole in zip(all_classifiers[4:], states, strict=True):
        torch.testing.assert_close(one.tensors(), whole, rtol=0, atol=0)
