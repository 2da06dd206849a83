"""Views that are learned: the objective and its signs, a toy whose information is known, what is kept on the way."""

import json
import math
import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from references import view_learning as reference
from torch import Tensor, nn
from torch.testing import assert_close

from vantage.composition.codec import decode, encode
from vantage.encoders import Convolutions, Encoder, LinearHead
from vantage.errors import UserError
from vantage.progress import QuietProgress
from vantage.studies.view_learning import (
    LEARNINGS,
    SWAPPED,
    Alternately,
    ByStatistics,
    Game,
    Jointly,
    LabeledBatch,
    LabelInformation,
    LearnedViews,
    Players,
    Rates,
    SharedInformation,
    ViewLearning,
    info_nce,
    learn,
    read_learning,
    semi_supervised,
    supervised,
    unsupervised,
)
from vantage.training.run import Data
from vantage.views import Augmentation, Flow, HorizontalFlip, RandomResizedCrop, RealNVP, VolumePreserving, YDbDr
from vantage.views.colors.flows import AdditiveLayer

IMAGES, SIZE, CLASSES = 60, 8, 3
by_preset = pytest.mark.parametrize("preset", LEARNINGS, ids=lambda preset: preset.__name__)
by_turns = pytest.mark.parametrize("updates", [Alternately(), Jointly()], ids=repr)


@dataclass(frozen=True)
class Perceptron:
    """Pixels through one hidden layer, if any: no BatchNorm, so that images do not meet."""

    inputs: int
    hidden: int = 5

    def build(self) -> nn.Module:
        network = nn.Sequential(nn.Flatten(), nn.Linear(self.inputs, self.hidden), nn.Tanh())
        setattr(network, "width", self.hidden)  # noqa: B010
        return network


def critics(pixels: int = 4, hidden: int = 5, width: int = 6) -> SharedInformation:
    one, two = (Encoder(Perceptron(pixels * channels, hidden), LinearHead(width)) for channels in (1, 2))
    return SharedInformation((one, two))


def classifiers(pixels: int = 4) -> LabelInformation:
    return LabelInformation((Perceptron(pixels), Perceptron(2 * pixels)))


def learning(*terms, **fields) -> ViewLearning:
    crop = Augmentation(RandomResizedCrop(2, (0.2, 1.0)), (HorizontalFlip(0.5),))
    return ViewLearning("toy", terms, crop, flow=Flow(RealNVP(4, 2), 3), **fields)


def off_the_start(players: Players) -> Players:
    """Every parameter off its start, in double precision."""
    torch.manual_seed(5)
    with torch.no_grad():
        for parameter in players.double().parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return players


def channels(count: int = 6, seed: int = 1) -> Tensor:
    return torch.randn(count, 3, 2, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def labeled(count: int = 5) -> LabeledBatch:
    return LabeledBatch(channels(count, 2), torch.arange(count) % CLASSES)


def unit_rows(count: int = 6) -> Tensor:
    return nn.functional.normalize(torch.randn(count, 4, dtype=torch.float64), dim=1)


# The objective


def test_the_information_follows_the_loops_and_its_gradient_is_right() -> None:
    first, second = unit_rows(), unit_rows()
    assert_close(float(info_nce(first, second, 0.3)), reference.information(first.tolist(), second.tolist(), 0.3))
    inputs = (first.requires_grad_(), second.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, b: info_nce(a, b, 0.3), inputs)


def test_the_information_is_at_most_log_n_and_none_of_vectors_that_are_all_alike() -> None:
    apart = torch.eye(8, dtype=torch.float64)
    assert_close(float(info_nce(apart, apart, 0.01)), math.log(8))
    alike = torch.ones(8, 1, dtype=torch.float64)
    assert_close(float(info_nce(alike, alike, 0.1)), 0.0)


@pytest.mark.parametrize(("shared", "labels"), [(1.0, 1.0), (0.5, 2.5)])
def test_the_objective_is_the_sum_of_equation_3(shared: float, labels: float) -> None:
    """I_NCE of all images, and both cross-entropies of the labeled ones only."""
    terms = replace(critics(), weight=shared), replace(classifiers(), weight=labels)
    players = off_the_start(Players(learning(*terms), CLASSES))
    pixels, some = channels(), labeled()
    objective = players.objective(pixels, some)

    f, c = players.each_term()
    one, two, volume = players.views(pixels)
    expected = shared * reference.information(_run(f.first, one), _run(f.second, two), 0.1)
    one, two, _ = players.views(some.images)
    for network, view in ((c.first, one), (c.second, two)):
        expected += labels * reference.cross_entropy(_run(network, view), some.label.tolist())
    assert_close(objective.total.item(), expected, rtol=1e-10, atol=0)
    assert_close(objective.numbers["log_det"], volume)
    assert set(objective.numbers) == {
        "log_det",
        "i_nce",
        *(f"{n}_{k}" for n in ("cross_entropy", "accuracy") for k in (1, 2)),
    }


def _run(network: Tensor | nn.Module, view: Tensor) -> list[list[float]]:
    assert isinstance(network, nn.Module)
    return network(view).tolist()


def test_equation_2_looks_at_no_label_and_supervised_learning_at_no_other_image() -> None:
    players = off_the_start(Players(learning(critics()), 0))
    assert_close(players.objective(channels(), None).total, players.objective(channels(), labeled()).total)
    players = off_the_start(Players(learning(classifiers()), CLASSES))
    assert_close(players.objective(None, labeled()).total, players.objective(channels(), labeled()).total)


def test_the_gradient_of_the_objective_is_right_for_the_flow() -> None:
    players = off_the_start(Players(learning(critics(), classifiers()), CLASSES))
    parameter_of = {name: p for name, p in players.named_parameters() if name.startswith("flow.layers.1.scale.0")}

    def total(*values: Tensor) -> Tensor:
        return torch.func.functional_call(_Sum(players), dict(zip(_under(parameter_of), values, strict=True)), ())

    assert torch.autograd.gradcheck(total, tuple(p.detach().clone().requires_grad_() for p in parameter_of.values()))


class _Sum(nn.Module):
    def __init__(self, players: Players) -> None:
        super().__init__()
        self.players = players

    def forward(self) -> Tensor:
        return self.players.objective(channels(), labeled()).total


def _under(parameters: dict[str, nn.Parameter]) -> list[str]:
    return [f"players.{name}" for name in parameters]


@by_turns
def test_the_flow_goes_down_the_gradient_that_the_critics_go_up(updates) -> None:
    """Steps of plain gradient descent, so that each change is the gradient itself."""
    settings = learning(critics(), classifiers(), updates=updates)
    game = Game(settings, CLASSES)
    off_the_start(game.players)
    pixels, some, rate = channels(), labeled(), 1e-3
    down = [p for group in game.descent.param_groups for p in group["params"]]
    game.descent, game.ascent = torch.optim.SGD(down, lr=rate), torch.optim.SGD(game.critics, lr=rate)
    shared = next(iter(game.players.each_term()))

    before = [p.detach().clone() for p in game.critics]
    one, two, _ = game.players.views(pixels)
    up = torch.autograd.grad(shared(one.detach(), two.detach(), None)[0], game.critics)
    expected = [p + rate * g for p, g in zip(before, up, strict=True)]
    if updates.critic_steps:  # g answers to critics that have moved already
        with torch.no_grad():
            for parameter, new in zip(game.critics, expected, strict=True):
                parameter.copy_(new)
    slope = torch.autograd.grad(game.players.objective(pixels, some).total, down)
    new_values = [p.detach() - rate * g for p, g in zip(down, slope, strict=True)]
    with torch.no_grad():
        for parameter, old in zip(game.critics, before, strict=True):
            parameter.copy_(old)

    game.step(pixels, some)
    assert max(g.abs().max() for g in up) > 1e-3 and max(g.abs().max() for g in slope) > 1e-3
    for parameter, new in zip((*game.critics, *down), (*expected, *new_values), strict=True):
        assert_close(parameter.detach(), new, rtol=0, atol=1e-14)


def test_rates_reach_the_right_players() -> None:
    game = Game(learning(critics(), classifiers(), rates=SWAPPED), CLASSES)
    assert [group["lr"] for group in game.descent.param_groups] == [6e-4, 2e-4]
    assert game.ascent is not None and [group["lr"] for group in game.ascent.param_groups] == [2e-4]
    assert all(group["betas"] == (0.5, 0.999) for group in game.descent.param_groups)
    sizes = [
        sum(p.numel() for p in group["params"]) for group in (*game.descent.param_groups, *game.ascent.param_groups)
    ]
    assert sum(sizes) == sum(p.numel() for p in game.players.parameters())


@by_preset
def test_an_untrained_flow_gives_the_channels_themselves(preset) -> None:
    pair = Convolutions((4,), 1), Convolutions((4,), 2)
    players = Players(replace(preset(32, pair), space=YDbDr()), CLASSES)
    pixels = channels().float()
    one, two, volume = players.views(pixels)
    assert torch.equal(one, pixels[:, :1]) and torch.equal(two, pixels[:, 1:]) and float(volume) == 0


def test_standardization_takes_out_size_and_is_a_constant_to_gradients() -> None:
    network = ByStatistics(0.5).build()
    images = (3 + 7 * channels(40)).float().requires_grad_()
    outputs = network(images)
    assert_close(outputs.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    assert_close(outputs.std((0, 2, 3), correction=0), torch.ones(3), atol=1e-4, rtol=0)
    outputs.sum().backward()
    slope = 1 / images.detach().std((0, 2, 3), correction=0)
    assert images.grad is not None
    assert_close(images.grad[0, :, 0, 0], slope, atol=1e-5, rtol=1e-4)
    network(torch.zeros(4, 3, 2, 2))
    assert_close(network.mean, images.detach().mean((0, 2, 3)) / 2, atol=1e-5, rtol=1e-4)
    mean = network.eval().mean.clone()
    network(images)
    assert torch.equal(network.mean, mean)


# A toy whose information is known


@dataclass(frozen=True)
class Shear:
    """Y₂ = X₂ + slope · X₁: a volume-preserving step that is linear."""

    def build(self) -> AdditiveLayer:
        slope = nn.Conv2d(1, 2, 1, bias=False)
        nn.init.zeros_(slope.weight)
        return AdditiveLayer(slope, None)


@pytest.mark.parametrize("updates", [pytest.param(Alternately(), marks=pytest.mark.slow), Jointly()], ids=repr)
def test_26_a_linear_flow_lowers_the_information_that_gaussian_channels_share(updates) -> None:
    """What is measured is the true information, which small critics are to find and the flow to remove."""
    root = torch.tensor([[1.0, 0.0, 0.0], [0.9, 0.5, 0.0], [-0.6, 0.3, 0.6]])
    covariance = root @ root.T
    chance = torch.Generator().manual_seed(0)
    settings = learning(critics(1, 24, 8), updates=updates, rates=Rates(generator=1e-2, critics=2e-2))
    game = Game(replace(settings, flow=Flow(Shear(), 3)), 0)

    def information() -> float:
        matrix = game.players.flow(torch.eye(3).view(3, 3, 1, 1))[0].flatten(1).T.detach()
        assert_close(torch.linalg.det(matrix), torch.tensor(1.0))
        return reference.between_gaussian_channels((matrix @ covariance @ matrix.T).tolist())

    before = information()
    for _ in range(150):
        game.step((torch.randn(128, 3, generator=chance) @ root.T).view(128, 3, 1, 1), None)
    assert before > 0.7
    assert information() < 0.25 * before


# A course


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    chance = np.random.default_rng(0)
    label = np.arange(IMAGES) % CLASSES
    color = chance.uniform(40, 215, (CLASSES, 1, 1, 3))[label]
    pixels = (color + chance.normal(0, 40, (IMAGES, SIZE, SIZE, 3))).clip(0, 255).astype(np.uint8)
    file = tmp_path_factory.mktemp("images") / "images.npz"
    np.savez(file, images=pixels, labels=label)
    np.savez(file.with_name("unlabeled.npz"), images=pixels)
    return str(file)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path_factory.mktemp("cache")))


def small(preset, path: str, **fields) -> ViewLearning:
    base = preset(SIZE, (Convolutions((4, 8), 1), Convolutions((4, 8), 2)))
    changes = {"epochs": 2, "batch_size": 12, "labeled_batch_size": 8, "data": Data(path), "device": "cpu", **fields}
    return replace(base, flow=Flow(VolumePreserving(4, 2), 3), **changes)


def rows(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


class Interrupting(QuietProgress):
    """Interrupts, as Ctrl-C does, when a step is reported."""

    def __init__(self, step: int) -> None:
        self.at = step

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        if completed == self.at:
            os.kill(os.getpid(), signal.SIGINT)


@by_preset
def test_a_course_writes_its_numbers_and_two_states(preset, path, tmp_path) -> None:
    settings = small(preset, path, space=YDbDr(), labels=30)
    outcome = learn(settings, tmp_path)
    assert outcome.finished and outcome.last is not None and outcome.best is not None
    metrics = rows(tmp_path)
    assert [row["epoch"] for row in metrics] == [1, 2] and metrics[-1]["step"] == outcome.step
    assert metrics[0]["best"] is None and metrics[1]["best"] == metrics[1]["held_out.objective"]
    shared, labels = preset is not supervised, preset is not unsupervised
    assert ("i_nce" in metrics[0]) == ("bound" in metrics[0]) == ("held_out.i_nce" in metrics[0]) == shared
    assert ("accuracy_1" in metrics[0]) == ("held_out.cross_entropy_2" in metrics[0]) == labels
    assert all(math.isfinite(value) for row in metrics for value in row.values() if value is not None)
    assert not shared or metrics[0]["bound"] == math.log(12)
    assert read_learning(tmp_path) == settings
    images = torch.rand(4, 3, 5, 5)
    channels = outcome.last.convert(images)
    assert channels.shape == images.shape
    normalized_channels = YDbDr().statistics.normalize().apply(YDbDr().convert(images), torch.empty(4, 0))
    assert 0 < float((channels - normalized_channels).abs().max()) < 0.1, "two epochs move the flow a little"


def test_an_interrupted_course_ends_as_if_it_had_not_been(path, tmp_path) -> None:
    """Stopped in the middle of an epoch: every parameter, number and file is the same, bit by bit."""
    settings = small(semi_supervised, path, scaling=ByStatistics())
    whole = learn(settings, tmp_path / "whole")
    first = learn(settings, tmp_path / "halves", Interrupting(5))
    assert not first.finished and first.step == 6 and first.step % 4
    halves = learn(settings, tmp_path / "halves")
    assert halves.finished and halves.last == whole.last and halves.best == whole.best
    for name in ("last.safetensors", "best.safetensors", "checkpoint/step-000000008/tensors.safetensors"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "halves" / name).read_bytes()
    pair = zip(rows(tmp_path / "whole"), rows(tmp_path / "halves"), strict=True)
    assert all({**one, "seconds": 0} == {**other, "seconds": 0} for one, other in pair)
    again = learn(settings, tmp_path / "halves")
    assert again == halves, "nothing is left to do"


def test_other_settings_or_images_are_refused_on_the_same_folder(path, tmp_path) -> None:
    settings = small(unsupervised, path, epochs=1)
    learn(settings, tmp_path)
    with pytest.raises(UserError, match="epochs is 1 there, 3 was asked"):
        learn(replace(settings, epochs=3), tmp_path)
    with pytest.raises(UserError, match="began on 60 images"):
        learn(replace(settings, data=Data(path, max_images=30)), tmp_path)


@by_turns
def test_a_loss_that_is_not_finite_ends_the_course_at_the_last_finite_state(updates, path, tmp_path) -> None:
    settings = small(unsupervised, path, updates=updates, rates=Rates(generator=1e4), epochs=20)
    with pytest.raises(UserError, match="stopped at step .* Lower the rates, or bound the flow"):
        learn(replace(settings, flow=Flow(RealNVP(4, 2), 6)), tmp_path)
    state = torch.cat([value.flatten() for value in _state(tmp_path / "last.safetensors").values()])
    assert torch.isfinite(state).all()


def _state(file: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    return load_file(file)


def test_labels_are_required_only_where_a_term_needs_them(path, tmp_path) -> None:
    without_labels = str(Path(path).with_name("unlabeled.npz"))
    for preset in (supervised, semi_supervised):
        with pytest.raises(UserError, match="none of the 60 images has one"):
            learn(small(preset, without_labels), tmp_path / "none")
    assert not (tmp_path / "none").exists(), "what is refused leaves nothing behind"
    assert isinstance(learn(small(unsupervised, without_labels, epochs=1), tmp_path / "some"), LearnedViews)


def test_too_few_images_of_a_kind_are_named(path, tmp_path) -> None:
    with pytest.raises(UserError, match="too few held-out images: a step takes 2, found 1 among 60 images: give more"):
        learn(small(unsupervised, path, validation=0.02), tmp_path)
    with pytest.raises(UserError, match="too few training images: a step takes 90, .* or set a smaller batch_size"):
        learn(small(unsupervised, path, batch_size=90), tmp_path)


def test_networks_that_do_not_fit_the_views_are_refused(path, tmp_path) -> None:
    settings = small(unsupervised, path, channels=((0, 1), (2,)))
    with pytest.raises(UserError, match="2 and 1 channels of 8 pixels"):
        learn(settings, tmp_path)


def test_senseless_settings_are_refused() -> None:
    good = unsupervised(32)
    for fields in (
        {"terms": ()}, {"epochs": 0}, {"batch_size": 1}, {"labels": -1}, {"validation": 0.0}, {"best_after": 1.0},
        {"channels": ((0,), (3,))},
    ):  # fmt: skip
        with pytest.raises(UserError):
            replace(good, **fields)
    for make in (
        lambda: Rates(generator=0.0), lambda: Rates(betas=(1.0, 0.9)), lambda: Alternately(0),
        lambda: ByStatistics(2.0), lambda: replace(critics(), temperature=0.0),
        lambda: replace(classifiers(), weight=0.0), lambda: Convolutions(()),
    ):  # fmt: skip
        with pytest.raises(UserError):
            make()


@by_preset
@pytest.mark.parametrize("size", [32, 64, 224])
def test_every_preset_is_read_back_from_its_settings(preset, size) -> None:
    settings = replace(preset(size), updates=Jointly(), scaling=ByStatistics())
    assert decode(json.loads(json.dumps(encode(settings))), ViewLearning) == settings
