"""The verdict on planted curves: each rule alone turns a healthy run into what it is."""

import math

import pytest
from known_curves import BATCH, WIDTH, curve

from vantage.facts.verdict import still_improving, verdict
from vantage.training.watching.monitor import SMALLEST_DEVIATION, smallest_rank


def of(rows: list, epochs: int = 20, beaten: tuple[str, ...] = ()) -> tuple[str, str]:
    """Kind and decisive reason."""
    result = verdict(rows, WIDTH, BATCH, epochs, beaten)
    return result.kind, result.reasons[0]


def test_a_run_that_leveled_off_is_healthy() -> None:
    kind, reason = of(curve())
    assert kind == "healthy" and "90%" in reason and "chance: 3.1%" in reason
    assert verdict(curve(), WIDTH, BATCH, 20).sentence == f"Healthy: {reason}"


def test_a_collapse_is_what_the_monitor_warns_of_at_the_end() -> None:
    for name, limit in (("deviation", SMALLEST_DEVIATION), ("rank", smallest_rank(WIDTH))):
        assert of(curve(**{name: limit - 1e-6}))[0] == "collapsed"
        assert of(curve(**{name: limit + 1e-6}))[0] == "healthy"
    early = curve(deviation=[0.05] * 5 + [0.9] * 15)
    for row in early[:5]:
        row["warning"] = "nearly one point"
    result = verdict(early, WIDTH, BATCH, 20)
    assert result.kind == "healthy" and "5 earlier epochs" in result.reasons[-1]


def test_a_collapse_of_any_branch_counts() -> None:
    watched = {"deviation.1": 0.9, "rank.1": 40.0}
    assert of(curve(**watched))[0] == "healthy"
    result = verdict(curve(**watched | {"deviation.1": 0.05}), WIDTH, BATCH, 20)
    first, second = result.reasons
    assert result.kind == "collapsed" and first.startswith("branch 1: the vectors of different images are nearly one")
    assert second.startswith("Deviation of the vectors of branch 0: 0.90")


def test_a_single_warning_is_one_epoch() -> None:
    rows = curve()
    rows[0]["warning"] = "nearly one point"
    reason = verdict(rows, WIDTH, BATCH, 20).reasons[-1]
    assert reason == "1 earlier epoch showed signs of a collapse, from which the run recovered."


def test_a_collapse_outweighs_missing_epochs() -> None:
    assert of(curve(5, deviation=0.01))[0] == "collapsed"


def test_missing_epochs_are_too_few() -> None:
    assert of(curve(), epochs=21) == (
        "under-trained",
        "20 of 21 epochs are done; `vantage resume` trains the rest.",
    )
    kind, reason = of(curve(2), epochs=2)
    assert kind == "under-trained" and "2 epochs, too few" in reason


def test_chance_is_nothing_learned() -> None:
    kind, reason = of(curve(accuracy=2 / BATCH))
    assert kind == "under-trained" and "about chance (3.1%)" in reason
    assert of(curve(accuracy=2 / BATCH + 0.01))[0] == "healthy"


def test_a_curve_that_still_moves_is_named() -> None:
    line = [epoch / 20 for epoch in range(20)]
    assert "the loss was still improving" in of(curve(loss=[3 - height for height in line]))[1]
    assert "the contrastive accuracy was" in of(curve(accuracy=[0.1 + height * 0.5 for height in line]))[1]
    assert of(curve(accuracy=[0.05 + height for height in line][:-1] + [0.995]))[0] == "healthy"
    kind, reason = of(curve(loss=[3 - height for height in line], knn=[50 + height for height in line]))
    assert kind == "under-trained" and "the loss and the kNN accuracy were" in reason


def test_a_baseline_that_is_as_good_shows() -> None:
    assert of(curve(), beaten=("knn, top-1",)) == ("under-trained", "a baseline is as good as the run in knn, top-1.")


def test_without_an_epoch_there_is_no_verdict() -> None:
    assert of([]) == ("no verdict", "no epoch of this run is over, so there is nothing to judge yet.")
    old = curve()
    del old[-1]["deviation"], old[-1]["rank"]
    kind, reason = of(old)
    assert kind == "no verdict" and "did not record deviation, rank" in reason


@pytest.mark.parametrize(
    ("values", "higher", "improving"),
    [
        ([1.0, 2.0, 3.0], True, True),
        ([1.0, 2.0, 3.0], False, False),
        ([3.0, 2.0, 1.0], False, True),
        ([1.0, 6.0, 5.0, 4.0], False, True),  # a memory fills first
        ([8.0, 2.0, 2.0, 2.0], False, False),
        ([35.0, 40.0, 46.7, 46.7, 41.7, 41.7, 43.3, 45.0], True, False),  # it was better before: noise of few queries
        ([2.0], True, False),
        ([], True, False),
        ([1.0] * 9, True, False),
        ([1 - math.exp(-n / 5) for n in range(40)], True, False),
        ([1 - math.exp(-n / 50) for n in range(40)], True, True),
    ],
)
def test_improving_is_measured_against_the_whole_curve(values: list[float], higher: bool, improving: bool) -> None:
    assert still_improving(values, higher) is improving


def test_whole_numbers_of_any_size_and_what_is_no_number_are_read_or_passed_over() -> None:
    rows = curve()
    for number, loss in ((3, 1), (4, 10**400), (5, math.nan), (6, "high"), (7, math.inf)):
        rows[number]["loss"] = loss
    assert of(rows)[0] in ("healthy", "under-trained")
