"""I_NCE on held-out images: against loops, on a toy whose truth is known, and through every kind of run."""

import math
from dataclasses import dataclass, replace

import pytest
import torch
from references import information as reference
from runs import run_of, work
from small_runs import SIZE
from tiny import images
from torch.nn.functional import normalize
from torch.testing import assert_close

from vantage import draws
from vantage.composition.codec import allowing
from vantage.errors import UserError
from vantage.estimators import TableEstimator
from vantage.frozen.networks import TrainedNetworks, trained_networks
from vantage.studies.analyse import Gaussian
from vantage.studies.analyse.held_out import HeldOutInformation, Pairing, nce_of_pairs, pairing


@pytest.mark.parametrize(("pairs", "negatives"), [(2, 1), (7, 3), (7, 6), (40, 39), (40, 5)])
def test_it_is_the_loop_over_pairs_in_a_random_order(pairs: int, negatives: int) -> None:
    query, key = normalize(torch.randn(2, pairs, 5, dtype=torch.float64), dim=2)
    order = torch.randperm(pairs, generator=torch.Generator().manual_seed(11)).tolist()
    expected = reference.of_pairs(query.tolist(), key.tolist(), order, negatives, 0.2)
    assert_close(nce_of_pairs(query, key, negatives, 0.2, 11).tolist(), expected, rtol=0, atol=1e-12)


def test_tiles_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key = normalize(torch.randn(2, 50, 5), dim=2)
    whole = nce_of_pairs(query, key, 20, 0.1, 3)
    monkeypatch.setattr("vantage.studies.analyse.held_out._ROWS", 7)
    assert_close(nce_of_pairs(query, key, 20, 0.1, 3), whole, rtol=0, atol=1e-12)


def test_with_all_other_keys_the_order_does_not_matter() -> None:
    query, key = normalize(torch.randn(2, 9, 5), dim=2)
    first, second = (nce_of_pairs(query, key, 8, 0.1, seed) for seed in (0, 1))
    assert_close(first, second, rtol=0, atol=1e-12)


@pytest.mark.parametrize("negatives", [0, -1, 9, 10])
def test_more_negatives_than_other_pairs_are_refused(negatives: int) -> None:
    with pytest.raises(UserError, match="of 9 pairs: give 1 to 8"):
        nce_of_pairs(torch.randn(9, 2), torch.randn(9, 2), negatives, 1.0, 0)


@pytest.mark.parametrize("correlation", [0.2, 0.9, 0.99])
def test_the_optimal_critic_estimates_the_known_information(correlation: float) -> None:
    gaussian = Gaussian(1.0, correlation)
    x, y = gaussian.pairs(4_000, 0)
    query, key = gaussian.queries(x, 0).vector, gaussian.keys(y).vector
    estimates = nce_of_pairs(query, key, 2_000, 1.0, 0)
    error = float((estimates - gaussian.critic(x, y)).std()) / math.sqrt(len(x))  # the critic's mean is the information
    chance = float(gaussian.critic(x, y).mean()) - gaussian.information
    assert float(estimates.mean()) - chance == pytest.approx(gaussian.information, abs=4 * error + 0.02)


def test_it_ends_at_its_bound_and_falls_short_of_more_information() -> None:
    gaussian = Gaussian(1.0, 0.9999)  # 4.6 nats, with a bound of log 4
    x, y = gaussian.pairs(500, 0)
    estimates = nce_of_pairs(gaussian.queries(x, 0).vector, gaussian.keys(y).vector, 3, 1.0, 0)
    assert gaussian.information > math.log(4)
    assert float(estimates.max()) <= math.log(4) + 1e-12
    assert 1.2 < float(estimates.mean()) < math.log(4)


def test_a_constant_critic_finds_nothing() -> None:
    estimates = nce_of_pairs(torch.ones(20, 3), torch.ones(20, 3), 10, 0.1, 0)
    assert_close(estimates, torch.zeros_like(estimates), rtol=0, atol=1e-12)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrainedNetworks]:
    """A tiny trained run of each kind."""
    folder, names = tmp_path_factory.mktemp("runs"), ("moco_v2", "cmc", "simclr", "pirl", "jcl")
    with allowing("tiny"):
        return {name: trained_networks(run_of(name, folder, epochs=1)[0]) for name in names}


@pytest.mark.slow
def test_each_recipe_has_its_pairing(runs: dict[str, TrainedNetworks]) -> None:
    pairings = {name: [pairing(branch) for branch in one.branches] for name, one in runs.items()}
    assert pairings["moco_v2"] == [Pairing(0, 1, same_draw=True)]
    assert pairings["simclr"] == [Pairing(0, 1, same_draw=True), Pairing(1, 0, same_draw=True)]
    assert pairings["cmc"] == [Pairing(0, 1, same_draw=False), Pairing(1, 0, same_draw=False)]
    assert pairings["pirl"] == [Pairing(0, 0, same_draw=False), Pairing(1, 0, same_draw=False)]
    assert pairings["jcl"] == [Pairing(0, 1, same_draw=True)]


@pytest.mark.parametrize("name", ["moco_v2", "cmc", "simclr", "pirl", "jcl"])
def test_runs_of_every_kind_are_measured(name: str, runs: dict[str, TrainedNetworks]) -> None:
    one, source = runs[name], images(30, seed=5, size=SIZE)
    estimates = HeldOutInformation(negatives=9, draws=2).of(one, source, work())
    assert [part.branch for part in estimates] == list(range(len(one.branches)))
    for part in estimates:
        assert (part.negatives, part.images, len(part.estimates)) == (9, 30, 2)
        assert part.bound == pytest.approx(math.log(10))
        assert all(math.isfinite(estimate) and estimate < part.bound for estimate in part.estimates)
        assert part.nats == pytest.approx(sum(part.estimates) / 2)
        assert part.deviation == pytest.approx(abs(part.estimates[0] - part.estimates[1]) / math.sqrt(2))
    again = HeldOutInformation(negatives=9, draws=2).of(one, source, work(batch=8))
    for part, same in zip(estimates, again, strict=True):
        assert_close(part.estimates, same.estimates, rtol=0, atol=1e-5)


def test_a_slow_network_answers_and_one_draw_makes_the_pair(runs: dict[str, TrainedNetworks]) -> None:
    one, source = runs["moco_v2"], images(20, seed=6, size=SIZE)
    information = HeldOutInformation(draws=1, seed=4)
    (estimate,) = information.of(one, source, work())
    seed, maker = draws.mix(4, 0x4E1D, 0, 0), one.run.views
    crops = [maker.crop(source.image(n), torch.Generator().manual_seed(draws.mix(seed, n, 0))) for n in range(20)]
    together = tuple(torch.stack(same) for same in zip(*crops, strict=True))
    views = maker.finish(together, torch.Generator().manual_seed(draws.mix(seed, 0, 1)))
    networks = one.learner.networks
    with torch.no_grad():
        query, key = networks.get_submodule("network")(views[0]), networks.get_submodule("slow")(views[1])
    expected = reference.of_pairs(query.tolist(), key.tolist(), list(range(20)), 19, 0.1)
    assert estimate.nats == pytest.approx(sum(expected) / 20, abs=1e-5)


def test_runs_are_a_table_and_a_picture(runs: dict[str, TrainedNetworks]) -> None:
    source, estimate = images(12, seed=6, size=SIZE), HeldOutInformation(draws=2)
    result = estimate([runs["moco_v2"], runs["simclr"]], source, work())
    assert [(row["run"], row["branch"]) for row in result.table()] == [
        (runs["moco_v2"].name, 0),
        (runs["simclr"].name, 0),
        (runs["simclr"].name, 1),
    ]
    (alone,) = estimate.of(runs["moco_v2"], source, work())
    first = result.table()[0]
    assert (first["i_nce"], first["deviation"], first["negatives"]) == (alone.nats, alone.deviation, 11)
    assert first["bound"] == pytest.approx(math.log(12))
    panel = result.figure().axes[0]
    assert [bar.get_width() for bar in panel.patches] == [row["i_nce"] for row in result.table()]  # type: ignore
    assert "log(negatives + 1)" in "\n".join(result.lines())


def test_too_few_held_out_images_are_refused(runs: dict[str, TrainedNetworks]) -> None:
    with pytest.raises(UserError, match="with 30 negatives needs 31 held-out images or more, found 30"):
        HeldOutInformation(negatives=30).of(runs["moco_v2"], images(30, seed=0, size=SIZE), work())
    with pytest.raises(UserError, match="give no fewer than 0, 2 and 1"):
        HeldOutInformation(draws=0)


def test_without_a_number_all_others_are_negatives() -> None:
    assert HeldOutInformation().negative_count(300) == 299
    assert HeldOutInformation().negative_count(100_000) == 4_095
    assert HeldOutInformation(images=50).negative_count(100_000) == 49


@pytest.mark.gpu
def test_a_gpu_finds_the_same(runs: dict[str, TrainedNetworks]) -> None:
    source = images(30, seed=5, size=SIZE)
    cpu_information = HeldOutInformation(draws=1).of(runs["moco_v2"], source, work())
    gpu_information = HeldOutInformation(draws=1).of(runs["moco_v2"], source, replace(work(), device="cuda:0"))
    assert_close(cpu_information[0].estimates, gpu_information[0].estimates, rtol=1e-3, atol=1e-3)


@dataclass(frozen=True)
class Cold:
    """An estimator of somebody's own that has no temperature."""

    def build(self, images: int) -> TableEstimator:
        """Never asked for."""
        raise AssertionError


def test_critics_without_a_temperature_are_refused(runs: dict[str, TrainedNetworks]) -> None:
    one = runs["moco_v2"]
    branch = replace(one.run.branches[0], estimator=Cold())
    with pytest.raises(UserError, match="critic of Cold is unknown"):
        HeldOutInformation(draws=1).of(
            replace(one, run=replace(one.run, branches=(branch,))), images(9, seed=0, size=SIZE), work()
        )


@dataclass(frozen=True)
class Whole(Cold):
    """An estimator of somebody's own whose temperature is a whole number."""

    temperature: float | int = 1


def test_a_temperature_may_be_a_whole_number(runs: dict[str, TrainedNetworks]) -> None:
    one, source = runs["moco_v2"], images(9, seed=0, size=SIZE)
    whole, fraction = (
        replace(one, run=replace(one.run, branches=(replace(one.run.branches[0], estimator=Whole(temperature)),)))
        for temperature in (1, 1.0)
    )
    information = HeldOutInformation(draws=1)
    assert information.of(whole, source, work()) == information.of(fraction, source, work())
