"""Student's t against SciPy's and the printed tables, and Holm's correction by its definition."""

import math

import pytest

from vantage.measures.significance import difference, holm, two_sided

A, B = [71.2, 70.4, 71.9, 70.8], [69.9, 70.1, 70.6, 69.5]


@pytest.mark.parametrize(
    ("t", "freedom", "p"), [(12.706, 1.0, 0.05), (4.303, 2.0, 0.05), (2.776, 4.0, 0.05), (3.169, 10.0, 0.01)]
)
def test_the_tail_is_that_of_printed_tables(t: float, freedom: float, p: float) -> None:
    assert two_sided(t, freedom) == pytest.approx(p, rel=1e-3)
    assert two_sided(-t, freedom) == two_sided(t, freedom)


def test_the_tail_is_that_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    for freedom in (1.0, 1.7, 2.0, 3.4, 9.0, 40.5):
        for t in (0.0, 0.3, 1.0, 2.5, 8.0):
            assert two_sided(t, freedom) == pytest.approx(2 * float(stats.t.sf(t, freedom)), rel=1e-3, abs=1e-7)


def test_paired_and_welch_tests_are_those_of_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    paired_test, welch = difference(A, B, True), difference(A, B[:3], False)
    assert paired_test is not None and welch is not None
    assert paired_test.p == pytest.approx(float(stats.ttest_rel(A, B).pvalue), rel=1e-6)
    assert welch.p == pytest.approx(float(stats.ttest_ind(A, B[:3], equal_var=False).pvalue), rel=1e-3)
    assert paired_test.mean == pytest.approx(1.05) and paired_test.n == (4, 4) and welch.n == (4, 3)
    assert (paired_test.test, welch.test) == ("paired t", "Welch's t")


def test_two_numbers_or_numbers_without_spread_are_not_tested() -> None:
    assert difference(A[:2], B[:2], True) is None and difference(A, B[:2], False) is None
    assert difference([1.0, 2.0, 3.0], [0.0, 1.0, 2.0], True) is None
    assert difference([1.0] * 3, [2.0] * 3, False) is None


def test_equal_gaps_are_not_tested_though_they_differ_by_rounding() -> None:
    counts, images = (791, 622, 56), 863
    first, second = ([100 * (right + more) / images for right in counts] for more in (5, 0))
    assert len({a - b for a, b in zip(first, second, strict=True)}) > 1
    assert difference(first, second, True) is None


def test_holm_multiplies_by_the_number_left() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0] and holm([]) == [] and not math.isnan(holm([0.2])[0])
