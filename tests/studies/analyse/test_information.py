"""Bounds on mutual information on a toy whose truth is known, and with trained critics.

The numbers in the names are those of the project's list of identities.
"""

import math
from dataclasses import replace
from functools import cache
from statistics import fmean

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from random_critics import random_critic
from references import information as reference
from torch.testing import assert_close

from vantage import draws
from vantage.errors import UserError
from vantage.memory import Bank
from vantage.negatives import Sample
from vantage.storage.tables import Mean
from vantage.studies.analyse import (
    EstimateCurve,
    EstimateCurves,
    Gaussian,
    OptimalToy,
    Spread,
    SpreadToy,
    TrainedToy,
    cnce,
    nce,
    percentiles,
)
from vantage.studies.analyse.gaussian import LOWER
from vantage.studies.analyse.spread import estimates_by_count
from vantage.studies.analyse.toy import PUBLISHED

# Identities


def test_09_a_constant_critic_gives_zero() -> None:
    constant = torch.full((4,), 3.7, dtype=torch.float64)
    assert_close(nce(constant, constant[:, None].expand(4, 50)), torch.zeros_like(constant), rtol=0, atol=1e-14)
    _, query, keys = random_critic(4, 80)
    same = replace(keys, vector=keys.vector[:1].expand(80, -1))
    own = (query.vector * same.vector[:4]).sum(1)
    for lower in LOWER:
        estimate = cnce(own, query, same, (*percentiles(lower), Sample(20)))
        assert_close(estimate, torch.zeros_like(estimate), rtol=0, atol=1e-13)


@given(negatives=st.integers(1, 60), scale=st.floats(0.1, 300.0), seed=st.integers(0, 99))
def test_09_nce_is_at_most_log_k_plus_1(negatives: int, scale: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    positive, *negative = scale * torch.randn(negatives + 1, 8, generator=generator, dtype=torch.float64)
    assert (nce(positive, torch.stack(negative, 1)) <= math.log(negatives + 1) + 1e-12).all()
    best = nce(positive.abs() + 1e4, torch.stack(negative, 1))
    assert_close(best, torch.full_like(best, math.log(negatives + 1)))


def test_10_the_information_of_the_toy() -> None:
    gaussian = Gaussian()
    assert gaussian.information == pytest.approx(0.020411, abs=5e-7)
    assert gaussian.information == pytest.approx(reference.information(2.0, 0.4), abs=1e-9)
    assert Gaussian(1.0, -0.7).information == pytest.approx(reference.information(1.0, -0.7), abs=1e-9)


def test_10_the_critic_is_the_ratio_of_densities() -> None:
    gaussian = Gaussian(1.5, -0.9)
    x, y = gaussian.pairs(50, 3)
    exact = [reference.log_ratio(a, b, 1.5, -0.9) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
    assert_close(gaussian.critic(x, y).tolist(), exact, rtol=0, atol=1e-12)
    with pytest.raises(UserError, match="nearer to 0"):
        Gaussian(1.0, 1.0)


def test_10_the_pairs_have_their_covariance() -> None:
    pairs = torch.stack(Gaussian().pairs(200_000, 5))
    assert_close(pairs.cov(), torch.tensor([[2.0, 0.4], [0.4, 2.0]], dtype=torch.float64), rtol=0, atol=0.025)
    assert_close(torch.stack(Gaussian().pairs(9, 5)), torch.stack(Gaussian().pairs(9, 5)), rtol=0, atol=0)


def test_10_a_toy_of_nothing_is_refused() -> None:
    with pytest.raises(UserError, match="at least one of each"):
        OptimalToy(pairs=0)


@cache
def optimal() -> EstimateCurves:
    """Standard errors over pairs and pool: .001 for NCE, growing with w_ℓ to .005."""
    return OptimalToy(pairs=700, pool=1_000, repetitions=2)()


def test_10_estimates_with_the_optimal_critic() -> None:
    curves = optimal()
    (curve,) = curves.curves
    paper = (0.0193, -0.012, -0.046, -0.099, -0.158, -0.211, -0.240)
    assert curves.lower == LOWER
    assert curve.mean[:4] == pytest.approx(paper[:4], abs=0.006)
    assert curve.mean[4:] == pytest.approx(paper[4:], abs=0.015)
    assert 0.0175 < curve.mean[0] < curves.information + 0.001
    assert list(curve.mean) == sorted(curve.mean, reverse=True)


def test_10_a_ring_may_exceed_the_information() -> None:
    gaussian = Gaussian()
    x, y = gaussian.pairs(1_000, 0)
    pool = gaussian.keys(gaussian.pairs(1_000, 1)[1])
    rules = (*percentiles(0.0, 90.0), Sample(100))
    query, positive = gaussian.queries(x, 0), gaussian.critic(x, y)
    gain = cnce(positive, query, pool, rules).mean() - cnce(positive, query, pool, (Sample(100),)).mean()
    assert float(gain) == pytest.approx(0.0499 - 0.0193, abs=0.006)


QUICK = TrainedToy(lower=(0.0, 10.0, 50.0), epochs=5, learning_rate=0.01, repetitions=1, held_out=3_000)


@cache
def quick_curves() -> EstimateCurves:
    return QUICK()


@pytest.mark.slow
def test_11_trained_estimates_fall_with_the_percentile() -> None:
    held_out, training = quick_curves().curves
    for curve in (held_out, training):
        all_of_them, tenth, half = curve.mean
        assert all_of_them > tenth + 0.005
        assert abs(half) < 0.002  # a constant critic is the best there is
    assert training.mean[1] > training.mean[2] - 0.001  # seen: .0152, .0019, .0000; held out .0157, .0020, .0000
    assert held_out.mean[0] < quick_curves().information + 0.01  # three standard errors of 3,000 pairs


def test_11_stale_banks_serve_too() -> None:
    toy = replace(QUICK, lower=(0.0,), epochs=1, held_out=100, memory=Bank(0.0))
    assert toy().curves[0].mean == toy().curves[0].mean  # trained twice, the same
    assert toy().curves[0].mean != replace(toy, learning_rate=0.03)().curves[0].mean


@cache
def most(lower: float) -> float:
    """What no critic's CNCE of the toy exceeds."""
    return reference.supremum(Gaussian().correlation, lower / 100)


def test_11_no_critic_reaches_the_published_value_on_pairs_it_was_not_trained_on() -> None:
    """.0075 at w_ℓ = 10, where Table 5 has .0124, so that is of training pairs; .0022 at 25, as Table 5 has it."""
    assert most(0.0) == pytest.approx(Gaussian().information, abs=2e-5)
    assert most(10.0) == pytest.approx(0.0075, abs=1e-4) and PUBLISHED.mean[1] > 1.5 * most(10.0)
    assert most(25.0) == pytest.approx(PUBLISHED.mean[2], abs=1e-4)


@pytest.mark.slow
def test_11_published_estimates() -> None:
    """At w_ℓ = 10 the paper's .0124 is not reached, on training pairs either.

    Seen there after 30 of the 100 epochs with seeds 0 to 4: .0069, .0060, .0098, .0046, .0069; after 100 epochs .0086
    in the mean of six seeds, from .0074 to .0117. The tolerance is two deviations of a single seed; it excludes the
    paper's value, and its .0022 at w_ℓ = 25.
    """
    toy = TrainedToy(lower=(0.0,), repetitions=1)
    held_out, training = (curve.mean[0] for curve in toy().curves)
    short = replace(toy, epochs=30)
    pairs_10, held_out_10 = zip(*(short.estimates(10.0, seed) for seed in range(3)), strict=True)
    assert fmean(pairs_10) == pytest.approx(0.0075, abs=0.004)
    assert held_out > fmean(held_out_10) + 0.005 and training > fmean(pairs_10) + 0.005
    assert 0.4 * most(10.0) < max(held_out_10) < most(10.0) + 0.001  # with ten times the pairs about .006
    assert held_out < toy.gaussian.information < training  # only held-out pairs obey the bound


@pytest.mark.parametrize("change", [{"repetitions": 0}, {"lower": ()}, {"learning_rate": 0.0}, {"epochs": 0}])
def test_11_toys_that_train_nothing_are_refused(change: dict) -> None:
    with pytest.raises(UserError, match="at least one of each"):
        replace(QUICK, **change)


SPREAD = SpreadToy(lower=(0.0, 50.0, 90.0), negatives=(16, 100, 400), pairs=800, draws=6, pool=2_000)


@cache
def spread_of_estimates() -> Spread:
    return SPREAD()


def test_12_variance_over_negatives_falls_with_the_percentile_while_the_total_rises() -> None:
    rows = {(row.lower, row.negatives): row for row in spread_of_estimates().rows}
    for negatives in SPREAD.negatives:
        nce_row, middle, tail = (rows[lower, negatives] for lower in SPREAD.lower)
        assert nce_row.conditional > 1.5 * middle.conditional > 1.5 * 1.5 * tail.conditional
        assert tail.total > 1.2 * nce_row.total
        assert nce_row.bias > middle.bias > tail.bias
        assert all(row.conditional < row.total for row in (nce_row, middle, tail))
    # To first order χ²/k, where χ² = 1/(1 − ρ²) − 1 is the mean over x of the variance of p(y|x)/p(y).
    assert rows[0.0, 100].conditional == pytest.approx((1 / (1 - 0.2**2) - 1) / 100, rel=0.2)
    assert rows[90.0, 100].conditional == pytest.approx(4.7e-5, rel=0.3)


def test_12_variance_over_negatives_falls_with_their_number() -> None:
    for lower in SPREAD.lower:
        few, some, many = (row.conditional for row in spread_of_estimates().rows if row.lower == lower)
        assert few / some == pytest.approx(100 / 16, rel=0.25)
        assert some / many == pytest.approx(400 / 100, rel=0.3)
    bias = [abs(row.bias) for row in spread_of_estimates().rows if row.lower == 0]
    assert bias[0] == pytest.approx(0.0417 / (2 * 16), abs=0.0015) and bias[2] < 0.0015  # χ²/2k to first order


def test_12_the_rows_are_means_and_variances_of_the_estimates() -> None:
    toy = replace(SPREAD, pairs=7, draws=3, negatives=(5, 11), lower=(50.0,), pool=40)
    x, y = toy.gaussian.pairs(7, 0)
    keys = toy.gaussian.keys(toy.gaussian.pairs(40, 1)[1])
    query, truth = toy.gaussian.queries(x, 0), toy.gaussian.critic(x, y)
    by_count = estimates_by_count(truth, query, keys, 50.0, (5, 11), 3)
    values = (query.vector @ keys.vector.T).tolist()
    for row, estimates, negatives in zip(toy().rows, by_count, (5, 11), strict=True):
        slow = []
        for i, line in enumerate(values):
            tail = reference.between(line, 50, 100)
            columns = [tail[j] for j in draws.integers(query.seeds[i : i + 1], 33, len(tail))[0]]
            sets = [[line[c] for c in columns[11 * r : 11 * r + negatives]] for r in range(3)]
            slow.append(reference.nce([float(truth[i])] * 3, sets))
        assert_close(estimates.tolist(), slow, rtol=0, atol=1e-12)
        assert (row.bias, row.conditional, row.total) == pytest.approx(
            reference.bias_and_variances(slow, truth.tolist()), rel=1e-9
        )
    for fields in ({"draws": 1}, {"lower": ()}, {"pool": 0}, {"negatives": ()}):
        with pytest.raises(UserError, match="at least 2 pairs"):
            replace(SPREAD, **fields)


# What people see


def test_tables_and_pictures() -> None:
    curves, wide = optimal(), spread_of_estimates()
    lines = curves.lines()
    assert "exact: 0.020411" in lines[0] and len(lines) == 2 + len(LOWER) and lines[2].startswith("0 (NCE)")
    assert [row["w_l"] for row in curves.table()] == list(LOWER)
    assert curves.table()[1]["optimal critic"] == curves.curves[0].mean[1]
    assert len(curves.figure().axes[0].lines) >= 2
    assert len(wide.lines()) == 2 + len(wide.rows) and wide.table()[0]["negatives"] == 16
    panels = wide.figure().axes
    assert [len(panel.lines) for panel in panels] == [3, 3, 3]
    assert torch.as_tensor(panels[1].lines[0].get_ydata()).tolist() == [
        row.conditional for row in wide.rows if row.lower == 0
    ]


def test_a_curve_is_mean_and_deviation_over_repetitions() -> None:
    one, two = EstimateCurve.of("one", [(1.0, 2.0)]), EstimateCurve.of("two", [(1.0, 2.0), (3.0, 2.0)])
    assert one == EstimateCurve("one", (Mean(1.0, None), Mean(2.0, None)))
    assert two == EstimateCurve("two", (Mean(2.0, math.sqrt(2)), Mean(2.0, 0.0)))
    curves = EstimateCurves("estimates", 1.5, (0.0, 10.0), (one, two))
    assert curves.lines()[2].split() == ["0", "(NCE)", "+1.00000", "+2.00000", "±", "1.41421"]
    assert curves.table()[1] == {"w_l": 10.0, "one": 2.0, "one ±": 0.0, "two": 2.0, "two ±": 0.0}
