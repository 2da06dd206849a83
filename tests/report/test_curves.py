"""The charts of runs, and those of the branches of a single run."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from known_curves import curve
from tiny import tiny_run

from vantage.facts.run_facts import RunFacts
from vantage.report.curves import Chart, curves


def facts(name: str, branches: int = 3, **columns: Any) -> RunFacts:
    run = tiny_run()
    run = replace(run, branches=run.branches * branches)
    return RunFacts(name, Path(name), run, curve(20, **columns), [], 8, "", [])


def charts_of(*runs: RunFacts) -> dict[str, Chart]:
    return {chart.title: chart for chart in curves(runs)}


def test_the_branches_of_a_run_are_in_the_chart_of_its_number_with_a_legend() -> None:
    charts = charts_of(facts("one", **{"loss.0": 3.0, "loss.1": 2.0, "loss.2": 1.0, "rank.2": 3.5}))
    loss, rank, alignment = (charts[title] for title in ("Loss", "Effective rank", "Alignment"))
    names = [(line.name, line.number) for line in loss.legend]
    assert names == [("weighted sum", 0), ("branch 0", 1), ("branch 1", 2), ("branch 2", 3)]
    assert all(f'class="curve run-{number}"' in loss.drawing and name in loss.drawing for name, number in names)
    assert "before their weights" in loss.caption
    assert [(line.name, line.number) for line in rank.legend] == [("branch 0", 1), ("branch 2", 3)]
    assert "branch 2: from 3.5 at epoch 1 to 3.5 at 20" in rank.drawing
    assert alignment.legend == () and "run-0" in alignment.drawing


def test_the_branches_of_a_run_with_more_than_four_are_a_band() -> None:
    losses = {f"loss.{n}": float(n + 1) for n in range(6)}
    charts = charts_of(facts("one", 6, **losses, **{f"rank.{n}": 10.0 * n for n in range(1, 5)}))
    loss, rank, alignment = (charts[title] for title in ("Loss", "Effective rank", "Alignment"))
    assert [line.name for line in loss.legend] == ["weighted sum"] and loss.drawing.count('class="curve') == 1
    assert loss.band and loss.band.name == "range of 6 branches" and loss.band.points[3] == (4, 1.0, 6.0)
    assert 'class="band run-1"' in loss.drawing and "before their weights" in loss.caption
    assert "range of 6 branches: 1 to 6 at epoch 1, 1 to 6 at epoch 20" in loss.drawing
    assert [line.name for line in rank.legend] == ["mean of 5 branches"] and rank.band and rank.band.number == 1
    assert alignment.legend == () and alignment.band is None and "band" not in alignment.drawing


def test_colors_tell_several_runs_apart_and_not_their_branches() -> None:
    charts = charts_of(facts("one", **{"loss.0": 3.0, "loss.1": 2.0}), facts("two"))
    assert charts["Loss"].legend == () and charts["Loss"].drawing.count('class="curve') == 2
    assert "before their weights" not in charts["Loss"].caption


def test_a_run_without_losses_of_branches_has_one_line() -> None:
    for chart in charts_of(facts("one")).values():
        assert chart.legend == () and chart.drawing.count('class="curve') == 1
