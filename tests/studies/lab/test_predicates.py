from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from vantage.errors import UserError
from vantage.studies.lab.judging.contrasts import judge_contrasts
from vantage.studies.lab.judging.curves import Curve, MostlyLeftOfTop, NearerToTop, ReverseU, VariesLess, parabola, top
from vantage.studies.lab.judging.predicates import Above, Beats, Close, Highest, Order, Predicate
from vantage.studies.lab.judging.shapes import Correlation, Gains, InteriorPeak, SharperPeak, spearman

CHANCE = np.random.default_rng(3)


def cells(**means: float) -> dict[str, tuple[float, ...]]:
    """Six seeds around each mean, the seeds' own level on top, which pairing takes away."""
    level = CHANCE.normal(0, 5, 6)
    return {name: tuple(level + mean + CHANCE.normal(0, 0.1, 6)) for name, mean in means.items()}


def verdict(predicate: Predicate, rows: dict[str, tuple[float, ...]]) -> str:
    contrasts = predicate.contrasts(rows.get)
    assert {term for term in predicate.terms} <= set(rows)
    return predicate.overall_verdict([one.verdict for one in judge_contrasts(contrasts)])


@pytest.mark.parametrize(
    "predicate, in_favor, against",
    [
        (Beats("a", "b"), {"a": 2, "b": 1}, {"a": 1, "b": 2}),
        (Beats("a", "b", 0.5), {"a": 2, "b": 1}, {"a": 1.2, "b": 1}),
        (Order(("a", "b", "c")), {"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 3, "c": 2}),
        (Highest("a", ("b", "c")), {"a": 3, "b": 2, "c": 1}, {"a": 2, "b": 3, "c": 1}),
        (Close(("a", "b"), 1.0), {"a": 1, "b": 1.2}, {"a": 1, "b": 3}),
        (InteriorPeak(("a", "b", "c", "d")), {"a": 1, "b": 2, "c": 3, "d": 1}, {"a": 1, "b": 2, "c": 3, "d": 4}),
        (Gains(("a", "b"), ("c", "d")), {"a": 3, "b": 1, "c": 2, "d": 1}, {"a": 2, "b": 1, "c": 3, "d": 1}),
    ],
)
def test_planted_effects(predicate: Predicate, in_favor: dict[str, float], against: dict[str, float]) -> None:
    assert verdict(predicate, cells(**in_favor)) == "supported"
    assert verdict(predicate, cells(**against)) == "refuted"


def test_a_margin_is_named_by_its_sign() -> None:
    names = [Beats("a", "b", by).contrasts({"a": (1.0,), "b": (1.0,)}.get)[0].name for by in (0.5, -0.5)]
    assert names == ["a − b − 0.5", "a − b + 0.5"]


def test_no_effect_is_undecided() -> None:
    rows = {name: tuple(CHANCE.normal(0, 1, 6)) for name in "abcd"}
    for predicate in (
        Beats("a", "b"),
        Order(("a", "b", "c")),
        InteriorPeak(("a", "b", "c", "d")),
        Close(("a", "b"), 0.2),
    ):
        assert verdict(predicate, rows) == "undecided"


def test_a_factor_and_a_bound() -> None:
    rows = {"a": (6.0, 6.2, 5.9, 6.1, 6.0, 6.05), "b": (2.0, 2.1, 1.9, 2.0, 2.05, 2.0)}
    assert verdict(Above("a", 2.0, "b"), rows) == "supported" and verdict(Above("a", 4.0, "b"), rows) == "refuted"
    assert verdict(Above("a", 5.0), rows) == "supported" and verdict(Above("a", 5.0, below=True), rows) == "refuted"


def test_rank_correlation_is_scipys_and_has_a_sign() -> None:
    for seed in range(5):
        x, y = np.random.default_rng(seed).integers(0, 5, (2, 9)).astype(float)
        assert spearman(tuple(x), tuple(y)) == pytest.approx(float(spearmanr(x, y).statistic))
    assert spearman((1.0, 1.0, 1.0), (1.0, 2.0, 3.0)) == 0.0
    rows = {name: tuple(CHANCE.normal(n, 0.8, 6)) for n, name in enumerate("abcdef")}
    rising_correlation = Correlation(tuple("abcdef"), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))
    falling_correlation = Correlation(tuple("abcdef"), (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), negative=True)
    assert verdict(rising_correlation, rows) == "supported" and verdict(falling_correlation, rows) == "refuted"
    both = {**{f"{name} @ x": tuple(-v for v in row) for name, row in rows.items()}, **rows}
    (rho,) = Correlation(tuple("abcdef"), "x").contrasts(both.get)
    assert rho.values == pytest.approx((-1.0,) * 6)


def test_a_cell_without_numbers_is_named() -> None:
    with pytest.raises(UserError, match="b has no numbers"):
        Beats("a", "b").contrasts({"a": (1.0,)}.get)


def test_gains_over_bases_are_correlated() -> None:
    numbers = {"a": (10.0,), "b": (11.0,), "c": (12.0,), "raw a": (1.0,), "raw b": (4.0,), "raw c": (7.0,)}
    plain = Correlation(("a", "b", "c"), (1.0, 2.0, 3.0))
    assert plain.contrasts(numbers.get)[0].values == pytest.approx((1.0,))
    gains = replace(plain, bases=("raw a", "raw b", "raw c"))
    assert gains.contrasts(numbers.get)[0].values == pytest.approx((-1.0,)) and set(gains.terms) == set(numbers)


def points(tops: float, curve: float = -1.0) -> dict[str, tuple[float, ...]]:
    """Five cells of six seeds at 0 to 4, on a parabola with this top; `curve` < 0 opens it downwards."""
    x = {name: place + CHANCE.normal(0, 0.05, 6) for place, name in enumerate("abcde")}
    y = {name: curve * (row - tops) ** 2 + CHANCE.normal(0, 0.05, 6) for name, row in x.items()}
    return {name: tuple(row) for name, row in y.items()} | {f"{name} @ x": tuple(row) for name, row in x.items()}


def test_a_reverse_u_has_its_top_inside() -> None:
    u = ReverseU(Curve(tuple("abcde"), "x"))
    assert verdict(u, points(2.0)) == "supported"
    for against in (points(2.0, curve=1.0), points(7.0), points(-3.0)):
        assert verdict(u, against) == "refuted"


def test_the_top_of_a_curve_is_inside_its_points() -> None:
    x = (0.0, 1.0, 2.0, 4.0)
    for y, at in (
        ([-((a - 1.5) ** 2) for a in x], 1.5),
        (x, 4.0),
        ([-a for a in x], 0.0),
        ([(a - 3) ** 2 for a in x], 0.0),
    ):
        assert top(x, y) == pytest.approx(at, abs=1e-6)
    a, b, c = parabola(x, [2 * a * a - 3 * a + 5 for a in x])
    assert (a, b, c) == pytest.approx((2.0, -3.0, 5.0))


def test_distance_from_the_top() -> None:
    curve = Curve(tuple("abcde"), "x")
    rows = points(3.0)
    assert verdict(NearerToTop(curve, ("d",), ("a", "b")), rows) == "supported"
    assert verdict(NearerToTop(curve, ("a",), ("c", "d")), rows) == "refuted"
    (gap,) = NearerToTop(curve, ("d",), ("a", "b")).contrasts(rows.get)
    assert gap.values == pytest.approx((2.5,) * 6, abs=0.3)
    assert verdict(MostlyLeftOfTop(curve, tuple("abc")), rows) == "supported"
    assert verdict(MostlyLeftOfTop(curve, tuple("ae")), rows) == "undecided"
    assert verdict(MostlyLeftOfTop(curve, ("e",)), rows) == "refuted"


def test_cells_that_vary_less() -> None:
    rows = cells(a=1, b=1.5, c=1, d=4)
    assert verdict(VariesLess(("a", "b"), ("c", "d")), rows) == "supported"
    assert verdict(VariesLess(("c", "d"), ("a", "b")), rows) == "refuted"


def test_a_sharper_peak_leads_the_mean_of_its_neighbors() -> None:
    sharper = SharperPeak(("a", "b", "c"), ("d", "e", "f"))
    assert verdict(sharper, cells(a=1, b=4, c=2, d=1, e=2, f=1)) == "supported"
    assert verdict(sharper, cells(a=1, b=1.5, c=1, d=1, e=4, f=1)) == "refuted"
    numbers = {name: (float(value),) for name, value in zip("abcdef", (1, 4, 2, 1, 2, 1), strict=True)}
    assert sharper.contrasts(numbers.get)[0].values == pytest.approx((1.5,))
