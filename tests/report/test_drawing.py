"""Charts are well-formed SVG that marks what it should, whatever names say."""

from xml.etree import ElementTree

import pytest

from vantage.report.drawing import HEIGHT, WIDTH, Line, Zone, chart, ticks

SVG = ElementTree.Element


def parse(drawing: str) -> SVG:
    return ElementTree.fromstring(drawing)


def test_a_chart_has_a_line_for_each_run_within_its_frame() -> None:
    lines = [Line("a", [(1, 5.0), (2, 3.0), (3, 4.0)]), Line("b", [(1, 1.0), (3, 2.0)], 1)]
    drawing = parse(chart("Loss", lines, "epoch"))
    groups = [group for group in drawing.iter("g")]
    assert [group.get("class") for group in groups] == ["curve run-0", "curve run-1"]
    for group in groups:
        path = group.find("path")
        assert path is not None
        numbers = [float(word) for word in path.get("d", "").replace("M", " ").replace("L", " ").split()]
        assert all(0 <= x <= WIDTH for x in numbers[::2]) and all(0 <= y <= HEIGHT for y in numbers[1::2])
    title = drawing.find("title")
    assert title is not None and title.text == "Loss. a: from 5 at epoch 1 to 4 at 3; b: from 1 at epoch 1 to 2 at 3"


def test_higher_values_stand_higher() -> None:
    drawing = parse(chart("x", [Line("a", [(0, 1.0), (1, 9.0)])], "epoch"))
    path = next(drawing.iter("g")).find("path")
    assert path is not None
    (_, first), (_, second) = (pair.split() for pair in path.get("d", "").removeprefix("M").split("L"))
    assert float(second) < float(first)


def test_the_zone_of_collapse_is_in_the_picture() -> None:
    drawing = parse(chart("Deviation", [Line("a", [(1, 0.9), (2, 0.05)])], "epoch", Zone(0.0, 0.1, "collapse")))
    (box,) = drawing.iter("rect")
    top, height = float(box.get("y", "")), float(box.get("height", ""))
    circle = next(drawing.iter("circle"))
    assert height > 10 and top <= float(circle.get("cy", "")) <= top + height
    assert "collapse" in [text.text for text in drawing.iter("text")]


@pytest.mark.parametrize("points", [[(1, 2.0)], [(1, 0.0), (2, 0.0)], [(1, -4.0), (2, -4.0)], [(1, 1e9), (2, 1e-9)]])
def test_flat_short_and_steep_curves_are_drawn(points: list[tuple[int, float]]) -> None:
    assert "nan" not in chart("x", [Line("a", points)], "epoch")
    parse(chart("x", [Line("a", points)], "epoch"))


def test_values_up_to_one_stand_below_a_tick_at_one() -> None:
    drawing = chart("deviation", [Line("one", [(1, 0.99), (2, 0.995)])], "epoch", Zone(0.0, 0.1, "collapse"))
    labels = [text.text for text in ElementTree.fromstring(str(drawing)).iter("text")]
    assert {"0", "1"} <= set(labels) and not any((label or "").startswith("−") for label in labels)


def test_without_points_there_is_no_chart() -> None:
    assert chart("x", [Line("a", [])], "epoch") == "" == chart("x", [Line("a", [(1, 0.0)])], "epoch", log=True)


def test_names_are_escaped() -> None:
    drawing = chart("<script>", [Line("<script>&", [(1, 2.0)])], '"><script>', Zone(0, 1, "<script>"))
    assert "<script>" not in drawing
    assert "<script>&" in [title.text for title in parse(drawing).iter("title")]


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.2, -0.4), (1, 200), (5.93, 6.19), (0, 0.003), (1, 2)])
def test_ticks_are_few_and_round(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert 2 <= len(marks) <= 6 and low - 1e-9 <= marks[0] and marks[-1] <= high + 1e-9
    step = marks[1] - marks[0]
    assert float(f"{step:.1e}"[:3]) in (1, 2, 5) and step == pytest.approx(float(f"{step:.0e}"))
