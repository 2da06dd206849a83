"""Views that are learned: the objective and its signs, and a toy whose information is known."""

import json
import math
from dataclasses import dataclass, replace

import pytest
import torch
from references import view_learning as reference
from torch import Tensor, nn
from torch.testing import assert_close
from toy_learning import CLASSES, channels, classifiers, critics, labeled, learning, off_the_start

from vantage.composition.assignments import assign
from vantage.composition.codec import decode, encode
from vantage.encoders import Convolutions
from vantage.errors import UserError
from vantage.studies.view_learning import (
    LEARNINGS,
    SWAPPED,
    Alternately,
    ByStatistics,
    Game,
    Jointly,
    Players,
    Rates,
    ViewLearning,
    info_nce,
    unsupervised,
)
from vantage.views import Flow, YDbDr
from vantage.views.colors.flows import AdditiveLayer

by_preset = pytest.mark.parametrize("preset", LEARNINGS, ids=lambda preset: preset.__name__)
by_turns = pytest.mark.parametrize("updates", [Alternately(), Jointly()], ids=repr)


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


def test_the_learning_rates_are_set_by_their_path_and_the_earlier_name_has_a_hint() -> None:
    settings = assign(unsupervised(32), ["learning_rates.generator=1e-4"])
    assert settings.learning_rates == Rates(generator=1e-4)
    with pytest.raises(UserError, match="no field 'rates.generator'; did you mean learning_rates.generator"):
        assign(settings, ["rates.generator=1e-4"])


def test_rates_reach_the_right_players() -> None:
    game = Game(learning(critics(), classifiers(), learning_rates=SWAPPED), CLASSES)
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
    settings = learning(critics(1, 24, 8), updates=updates, learning_rates=Rates(generator=1e-2, critics=2e-2))
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


def test_senseless_settings_are_refused() -> None:
    good = unsupervised(32)
    for fields in (
        {"terms": ()}, {"epochs": 0}, {"batch_size": 1}, {"labels": -1}, {"validation": 0.0}, {"best_after": 1.0},
        {"channels": ((0,), (3,))}, {"labeled_batch_size": 1},
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
