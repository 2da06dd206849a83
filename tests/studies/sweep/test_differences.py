"""Differences to the first value over paired seeds, in the table that a sweep writes."""

import math
from statistics import fmean, stdev

import pytest

from vantage.facts.results import RANDOM_ENCODER, RAW_PIXELS
from vantage.measures.significance import interval
from vantage.studies.sweep import SweepResult, SweepRow, sweep_figure
from vantage.studies.sweep.paired import PairedDifference

ACCURACIES = {"0.1": (50.0, 52.0, 47.0), "0.3": (53.0, 54.0, 52.0), "0.5": (49.0, 51.0, 46.0)}


def result_of(accuracies: dict[str, tuple[float, ...]], shared: bool = True) -> SweepResult:
    """A sweep with these accuracies by seed, and its baselines."""
    measured = {"i_nce": 1.0, "i_nce_deviation": 0.1, "bound": 2.0} if shared else {}
    rows = [
        SweepRow(f"{label}-{seed}", "moco_v2", label, float(label), seed, {"knn": accuracy}, **measured)
        for label, values in accuracies.items()
        for seed, accuracy in enumerate(values)
    ]
    baselines = tuple(SweepRow(name, name, "0.1", 0.1, 0, {"knn": 20.0}) for name in (RAW_PIXELS, RANDOM_ENCODER))
    return SweepResult("field", "temperature", tuple(rows), baselines, True, 5 if shared else 0, 24)


def test_the_difference_is_paired_by_seed() -> None:
    gaps = [b - a for a, b in zip(ACCURACIES["0.1"], ACCURACIES["0.3"], strict=True)]
    gap = result_of(ACCURACIES).difference("0.3", "knn")
    assert gap is not None
    half = 4.302653 * stdev(gaps) / math.sqrt(3)  # t of 97.5 % with two degrees of freedom
    assert (gap.mean, gap.low, gap.high) == pytest.approx((fmean(gaps), fmean(gaps) - half, fmean(gaps) + half))
    assert (gap.low, gap.high) == interval(gaps)


def test_the_table_has_differences_from_three_seeds_on() -> None:
    result = result_of(ACCURACIES)
    first, second, third, raw, _ = result.table()
    assert first["knn − first (%)"] is None and raw["knn − first (%)"] is None
    assert second["knn − first (%)"] == pytest.approx(10 / 3)
    assert third["knn − first (%) low"] == third["knn − first (%) high"] == -1.0
    cells = [line.split(" | ") for line in result.markdown().splitlines() if line.startswith("|")]
    assert [row[-1].strip(" |") for row in cells if "---" not in row[0]] == [
        "knn − first (%)", "–", "+3.3 [-0.5, +7.1]", "-1.0", "–", "–",
    ]  # fmt: skip
    assert "mean over paired seeds [95 % interval]" in result.caption()
    few = result_of({label: values[:2] for label, values in ACCURACIES.items()})
    assert not few.has_differences and all("knn − first (%)" not in row for row in few.table())
    assert "first" not in few.markdown()


def test_only_seeds_in_common_are_compared() -> None:
    """A sweep that was stopped has fewer seeds of its last values."""
    result = result_of(ACCURACIES | {"0.5": ACCURACIES["0.5"][:2]})
    assert result.difference("0.3", "knn") and result.difference("0.5", "knn") is None
    assert PairedDifference.of({0: 1.0, 1: 2.0, 5: 3.0}, {0: 0.0, 1: 0.0, 2: 0.0}) is None
    gap = PairedDifference.of({0: 1.0, 1: 2.0, 2: 6.0, 5: 9.0}, {0: 0.0, 1: 0.0, 2: 0.0, 3: 7.0})
    assert gap is not None and gap.mean == 3.0


def test_differences_that_are_equal_but_for_rounding_have_no_interval() -> None:
    counts, images = (791, 622, 56), 863
    values, first = ({seed: 100 * (n + more) / images for seed, n in enumerate(counts)} for more in (5, 0))
    gap = PairedDifference.of(values, first)
    assert gap is not None and gap.words(1) == "+0.6"


def test_without_information_no_column_and_one_panel() -> None:
    result = result_of(ACCURACIES, shared=False)
    assert result.bound == 0.0 and not result.measures_information
    assert result.summary().head == ("value", "seeds", "knn (%)", "knn − first (%)")
    assert "I_NCE" not in result.markdown() and len(result.lines()) == 1 + 1 + 5
    assert [panel.get_title() for panel in sweep_figure(result).axes] == ["accuracy"]
    assert [panel.get_title() for panel in sweep_figure(result_of(ACCURACIES)).axes][2] == "one against the other"


def test_lines_go_from_left_to_right_whichever_value_is_first() -> None:
    first, *others = sweep_figure(result_of({label: ACCURACIES[label] for label in ("0.5", "0.1", "0.3")})).axes
    means = [fmean(ACCURACIES[label]) for label in ("0.1", "0.3", "0.5")]
    for panel in (first, others[0]):
        (line,) = (line for line in panel.lines if line.get_linestyle() == "-" and len(line.get_xdata()) == 3)
        assert list(line.get_xdata()) == [0.1, 0.3, 0.5]
        assert [tick.get_text() for tick in panel.get_xticklabels()] == ["0.1", "0.3", "0.5"]
        assert panel is not first or list(line.get_ydata()) == means
