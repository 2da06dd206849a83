import math
from itertools import product
from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from vantage.errors import UserError
from vantage.measures.significance import interval
from vantage.studies.lab.judging.contrasts import SeedContrast, judge_contrasts, level, sign_flip

SIX = (0.4, 1.1, 0.7, -0.2, 0.9, 1.3)


def one(values: tuple[float, ...], delta: float = 0.0) -> SeedContrast:
    return SeedContrast("a − b", values, delta)


def test_the_interval_is_scipys() -> None:
    low, high = stats.t.interval(0.95, len(SIX) - 1, loc=np.mean(SIX), scale=stats.sem(SIX))
    assert interval(SIX) == pytest.approx((low, high), abs=1e-12)
    assert interval((1.0,)) == (-math.inf, math.inf)


def test_p_is_that_of_the_paired_t_test() -> None:
    (result,) = judge_contrasts([one(SIX)])
    assert result.p == pytest.approx(float(stats.ttest_1samp(SIX, 0.0).pvalue), abs=1e-12)
    assert result.mean == pytest.approx(fmean(SIX)) and result.n == 6


def test_sign_flips_count_every_pattern() -> None:
    sums = [abs(sum(s * v for s, v in zip(signs, SIX, strict=True))) for signs in product((1, -1), repeat=6)]
    expected = sum(total >= abs(sum(SIX)) - 1e-12 for total in sums) / 64
    assert sign_flip(SIX) == pytest.approx(expected)
    assert sign_flip((1.0, 2.0, 3.0, 4.0, 5.0, 6.0)) == pytest.approx(2 / 64)  # the least that six can give
    assert sign_flip(()) is None and sign_flip((1.0,) * 17) is None
    oracle = stats.permutation_test((np.array(SIX),), np.mean, permutation_type="samples", n_resamples=np.inf)
    assert sign_flip(SIX) == pytest.approx(float(oracle.pvalue))


def test_each_look_needs_a_smaller_p() -> None:
    assert level(0) == level(5) == level(6) == 0.05 and level(7) == level(12) == 0.0294
    assert level(13) == 0.0221 and level(24) == 0.0182 and level(25) == level(99) == 0.0158
    between = (1.0, 0.3, -0.5, 1.6, 0.9, -0.1, 1.2, -0.3, 0.9, 0.3)
    p = float(stats.ttest_1samp(between, 0.0).pvalue)
    assert level(10) < p < level(6)
    (result,) = judge_contrasts([one(between)])
    assert result.p == pytest.approx(p) and result.verdict == "undecided"


def test_two_looks_at_that_level_err_in_5_of_100_cases() -> None:
    draws = np.random.default_rng(0).standard_normal((200_000, 12))
    looks = [stats.ttest_1samp(draws[:, :count], 0.0, axis=1).pvalue < level(12) for count in (6, 12)]
    assert np.mean(looks[0] | looks[1]) == pytest.approx(0.05, abs=0.003)


def test_equivalence_is_two_one_sided_tests() -> None:
    values = (0.1, -0.2, 0.05, 0.0, 0.12, -0.06)
    (result,) = judge_contrasts([one(values, 0.5)])
    below = stats.ttest_1samp(values, -0.5, alternative="greater").pvalue
    above = stats.ttest_1samp(values, 0.5, alternative="less").pvalue
    assert result.p == pytest.approx(float(max(below, above)), abs=1e-12) and result.verdict == "supported"
    low, high = stats.t.interval(0.9, 5, loc=np.mean(values), scale=stats.sem(values))
    assert -0.5 < low < high < 0.5  # which is what the test says


def test_a_difference_beyond_delta_refutes_equivalence() -> None:
    values = (2.0, 2.2, 1.9, 2.1, 2.05, 1.95)
    (result,) = judge_contrasts([one(values, 0.5)])
    assert result.verdict == "refuted"
    assert result.p == pytest.approx(float(stats.ttest_1samp(values, 0.5).pvalue), abs=1e-12)
    (wide,) = judge_contrasts([one((2.0, -1.0, 0.4, 1.3, -0.8, 0.9), 0.5)])
    assert wide.verdict == "undecided"


def test_holm_goes_over_all_contrasts() -> None:
    rows = [tuple(np.random.default_rng(n).normal(0.3 * n, 1, 6)) for n in range(4)]
    results = judge_contrasts([one(row) for row in rows])
    p = [float(stats.ttest_1samp(row, 0.0).pvalue) for row in rows]
    order, least = np.argsort(p), 0.0
    for rank, number in enumerate(order):
        least = max(least, min(1.0, (4 - rank) * p[number]))
        assert results[number].p == pytest.approx(least)


def test_planted_effects_are_found_on_the_side_where_they_are() -> None:
    noise = np.random.default_rng(1).normal(0, 0.3, 6)
    for effect, verdict in ((2.0, "supported"), (-2.0, "refuted"), (0.0, "undecided")):
        (result,) = judge_contrasts([one(tuple(noise - noise.mean() + effect))])
        assert result.verdict == verdict


def test_fewer_than_five_pairs_decide_nothing_however_large() -> None:
    (four,) = judge_contrasts([one((10.0, 10.1, 9.9, 10.05))])
    assert four.p < 1e-4 and four.verdict == "undecided"
    (five,) = judge_contrasts([one((10.0, 10.1, 9.9, 10.05, 10.0))])
    assert five.verdict == "supported"


def test_numbers_without_spread_and_single_ones_decide_nothing() -> None:
    for values in ((1.0,) * 6, (0.0,) * 6, (3.0,)):
        (result,) = judge_contrasts([one(values)])
        assert result.verdict == "undecided" and result.p == 1.0


def test_bounded_numbers_that_all_seeds_agree_on_are_decided_by_sign_flips() -> None:
    """Such as a rank correlation of 1: eight seeds have p 2/2⁸, five have .0625."""
    for seeds, verdict in ((8, "supported"), (5, "undecided")):
        (result,) = judge_contrasts([SeedContrast("ρ", (1.0,) * seeds, bounded=True)])
        assert result.p == 2 / 2**seeds and result.verdict == verdict
    (against,) = judge_contrasts([SeedContrast("ρ", (-1.0,) * 8, bounded=True)])
    assert against.verdict == "refuted"


def test_a_question_that_several_claims_ask_is_corrected_for_once() -> None:
    values = (0.4, 0.5, 0.3, 0.45, 0.5)
    (alone,) = judge_contrasts([one(values)])
    again = judge_contrasts([one(values), SeedContrast("by another name", values), one((0.1, -0.1, 0.2, 0.0, 0.1))])
    assert [each.name for each in again] == [alone.name, "by another name", alone.name]
    assert again[0].p == again[1].p == pytest.approx(2 * alone.p)


def test_false_alarms_of_a_whole_entry_stay_near_their_level() -> None:
    chance = np.random.default_rng(7)
    entries = [judge_contrasts([one(tuple(row)) for row in chance.normal(0, 1, (6, 6))]) for _ in range(30)]
    share = np.mean([any(each.verdict != "undecided" for each in results) for results in entries])
    assert share < 0.14  # .05 and chance


def test_paper_numbers_hold_or_do_not() -> None:
    assert one((1.1,)).holds() and not one((0.0,)).holds() and not one((-0.1,)).holds()
    assert one((0.4,), 0.5).holds() and not one((0.6,), 0.5).holds()
    with pytest.raises(UserError, match="finite"):
        one((math.nan,))
