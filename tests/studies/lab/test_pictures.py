import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vantage.errors import UserError
from vantage.measures.significance import interval
from vantage.studies.lab import ENTRIES, Cell, Claim, Entry, Gate
from vantage.studies.lab.entry import paper
from vantage.studies.lab.judging.contrasts import ContrastResult
from vantage.studies.lab.page.annotations import in_two_lines
from vantage.studies.lab.page.figure import arrange, draw, figure_of, in_words
from vantage.studies.lab.page.overview import Effect, overview_figure, overview_in_words
from vantage.studies.lab.page.page import PICTURES, overview_of, picture_boxes
from vantage.studies.lab.page.points import PAPER, Box, boxes
from vantage.studies.lab.panel import Panel
from vantage.studies.lab.verdicts import Numbers

WEIGHTS = {"λ 0": 0.0, "λ .5": 0.5, "λ 1": 1.0}
ENTRY = Entry(
    "an-entry",
    "A",
    "Figure 1",
    "a weight",
    claims=(Claim("1", "none", "§1", (), note="a toy"),),
    cells=(*paper("mAP", ("λ 0", 60.0), ("λ 1", 62.0)), Cell("λ .5"), Cell("base"), Cell("raw")),
    gate=Gate("base", ("raw",), "knn"),
    panels=(
        Panel("knn", {"": WEIGHTS}, "λ", paper_columns=("mAP",), paper_label="VOC (%)", reference_lines=("base",)),
        Panel("knn", {"": ("base", *WEIGHTS)}),
        Panel("knn", {"": tuple(WEIGHTS)}, x_measure="I_NCE"),
    ),
)
SEEDS = {
    "λ 0": {0: 10.0, 1: 11.0, 2: 12.0},
    "λ .5": {0: 14.0, 1: 15.0, 2: 19.0},
    "λ 1": {1: 12.0},
    "base": {0: 9.0, 1: 9.5, 2: 10.0},
    "raw": {0: 5.0, 1: 5.0, 2: 5.0},
}
NUMBERS: Numbers = {
    name: {"knn": row, "I_NCE": {seed: value / 10 for seed, value in row.items()}} for name, row in SEEDS.items()
}
LEVELS = [("two cores", NUMBERS), ("one GPU", {})]


def comparison_boxes() -> tuple[Box, ...]:
    return boxes(ENTRY, LEVELS)


def test_the_picture_of_all_papers_has_a_row_for_each_claim() -> None:
    """Under the name of its paper, at its difference, in the color of its verdict."""
    test = ContrastResult("a − b", 6, 1.5, 1.0, 2.5, 0.01, 0.03, "supported")
    shown = [Effect("A", "a is best", test, "supported"), Effect("B", "b is best", test, "refuted")]
    axis = overview_figure(shown).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["A", "a is best", "B", "b is best"]
    marks = [container for container in axis.containers if len(container) == 3]
    assert [mark[0].get_xydata().tolist() for mark in marks] == [[[1.5, 1.0]], [[1.5, 3.0]]]
    assert [mark[2][0].get_segments()[0][:, 0].tolist() for mark in marks] == [[1.0, 2.5]] * 2
    assert marks[0][0].get_color() != marks[1][0].get_color()
    assert overview_in_words(shown[:1]) == "A: a is best: supported, +1.50 [+1.00, +2.50]."


def test_the_picture_of_all_papers_has_their_own_differences() -> None:
    test = ContrastResult("a − b", 6, 1.5, 1.0, 2.5, 0.01, 0.03, "supported")
    shown = [Effect("A", "a is best", test, "supported", (3.0, 0.5)), Effect("A", "b is best", test, "refuted")]
    axis = overview_figure(shown).axes[0]
    hollow = [line.get_xydata() for line in axis.lines if line.get_markerfacecolor() == "white"]
    assert [points.tolist() for points in hollow if len(points)] == [[[3.0, 1.0], [0.5, 1.0]]]
    assert overview_in_words(shown[:1]) == "A: a is best: supported, +1.50 [+1.00, +2.50], the paper +0.5, +3."


def test_a_picture_has_the_points_of_the_results_and_of_the_paper() -> None:
    line, theirs, rows, shared = comparison_boxes()
    assert [(box.source, box.title) for box in (line, theirs, rows, shared)] == [
        ("two cores", "two cores, 1 to 3 seeds"), (PAPER, PAPER), *[("two cores", "two cores, 1 to 3 seeds")] * 2
    ]  # fmt: skip
    assert [(p.name, p.at, p.values, p.seeds) for p in line.curves[""]] == [
        ("λ 0", (0.0,), (10.0, 11.0, 12.0), (0, 1, 2)),
        ("λ .5", (0.5,), (14.0, 15.0, 19.0), (0, 1, 2)),
        ("λ 1", (1.0,), (12.0,), (1,)),
    ]
    assert line.lines == {"base": 9.5} and line.floor == "floor: raw 5"
    assert [(p.at, p.values) for p in theirs.curves["mAP"]] == [((0.0,), (60.0,)), ((1.0,), (62.0,))]
    assert rows.panel.rows == ("base", *WEIGHTS) and len(rows.curves[""]) == 4
    assert shared.curves[""][1].at == (1.4, 1.5, 1.9)


def test_points_of_the_paper_on_our_axes_are_named_too(repository: Path) -> None:
    first = replace(ENTRY.panels[0], paper_shares_axes=True)
    assert [box.sources for box in boxes(replace(ENTRY, panels=(first,)), LEVELS)] == [("two cores", PAPER)]
    assert [box.sources for box in comparison_boxes()[:2]] == [("two cores",), (PAPER,)]
    lines = (repository / "docs" / "claims.md").read_text(encoding="utf-8").splitlines()
    (table,) = (line for line in lines if line.endswith("(images/claims/infomin-table-4.svg)"))
    assert "Points from two cores, the paper." in table


def test_means_intervals_and_seeds_are_where_the_numbers_are() -> None:
    line, theirs, rows, _ = shapes(comparison_boxes())
    (means,) = [bars for bars in line.containers if len(bars.lines[0].get_xdata()) == 3]
    assert list(means.lines[0].get_xdata()) == [0.0, 0.5, 1.0]
    assert list(means.lines[0].get_ydata()) == [11.0, 16.0, 12.0]
    first, second, alone = (segment[:, 1] for segment in means.lines[2][0].get_segments())
    assert tuple(first) == pytest.approx(interval((10.0, 11.0, 12.0)))
    assert tuple(second) == pytest.approx(interval((14.0, 15.0, 19.0)))
    assert tuple(alone) == (12.0, 12.0)  # one seed shows no spread
    seed = [(list(x.get_xdata()), list(x.get_ydata())) for x in line.lines]
    assert ([0.0, 0.5, 1.0], [11.0, 15.0, 12.0]) in seed and ([0.0, 0.5], [12.0, 19.0]) in seed
    assert line.get_title() == "two cores, 1 to 3 seeds\nfloor: raw 5"
    assert (line.get_xlabel(), line.get_ylabel()) == ("λ", "nearest neighbors,\ntop-1 (%)")
    assert theirs.get_ylabel() == "VOC (%)" and rows.get_xlabel() == "nearest neighbors, top-1 (%)"
    assert [label.get_text() for label in rows.get_yticklabels()] == ["base", *WEIGHTS]


def shapes(points: tuple[Box, ...]) -> list[Any]:
    """The panels of a picture, as matplotlib drew them."""
    return [axis for axis in figure_of(points).axes if axis.get_visible()]


def test_the_same_results_give_the_same_bytes_and_say_every_number() -> None:
    content = draw(comparison_boxes())
    assert content == draw(comparison_boxes()) and b"<dc:date>" not in content
    assert description(content) == in_words(comparison_boxes())
    assert "by λ, two cores, 1 to 3 seeds: λ 0 11, λ .5 16, λ 1 12." in in_words(comparison_boxes())


def description(content: bytes) -> str:
    (words,) = ET.fromstring(content).iter("{http://purl.org/dc/elements/1.1/}description")
    return words.text or ""


def test_too_few_points_are_no_picture() -> None:
    few = {name: row for name, row in NUMBERS.items() if name in ("λ 0", "base", "raw")}
    assert boxes(ENTRY, [("two cores", few)]) == () and boxes(replace(ENTRY, panels=()), LEVELS) == ()


def test_boxes_stand_at_most_three_in_a_row() -> None:
    line, theirs, rows, shared = comparison_boxes()
    gpu = [replace(box, source="one GPU") for box in (line, rows, shared)]
    assert arrange((line, theirs)) == [[line, theirs]]
    assert arrange((line, theirs, rows, shared)) == [[line, theirs, rows], [shared]]
    ours = (line, gpu[0], rows, gpu[1], shared, gpu[2])
    assert arrange(ours) == [[line, rows, shared], gpu]


def test_neighbors_with_the_same_curves_share_a_legend() -> None:
    curves = {"odd": {"λ 0": 0.0, "λ 1": 1.0}, "even": {"λ 0": 0.0, "λ .5": 0.5}}
    panels = tuple(Panel(measure, curves, "λ") for measure in ("knn", "I_NCE"))
    legends = [axis.get_legend() for axis in shapes(boxes(replace(ENTRY, panels=panels), LEVELS))]
    assert [legend is not None for legend in legends] == [True, False]
    other = Panel("knn", {"one": curves["odd"], "two": curves["even"]}, "λ")
    legends = [axis.get_legend() for axis in shapes(boxes(replace(ENTRY, panels=(panels[0], other)), LEVELS))]
    assert [[each.get_text() for each in legend.get_texts()] for legend in legends] == [["odd", "even"], ["one", "two"]]


def test_points_have_names_that_do_not_cross() -> None:
    names = {f"kind, {number}": number for number in range(4)}
    cells = tuple(Cell(name) for name in names)
    rows = {name: {"knn": {0: 10.0 + n}, "I_NCE": {0: 1.0 + n}} for name, n in names.items()}
    panel = Panel("knn", {"kind": tuple(names)}, x_measure="I_NCE")
    entry = replace(ENTRY, cells=(*ENTRY.cells, *cells), panels=(panel,))
    (axis,) = shapes(boxes(entry, [("two cores", rows)]))
    assert sorted(text.get_text() for text in axis.texts) == ["0", "1", "2", "3"]
    same = {name: {"knn": {0: 10.0}, "I_NCE": {0: 1.0}} for name in names}
    (axis,) = shapes(boxes(entry, [("two cores", same)]))
    assert axis.texts and len({text.xyann for text in axis.texts}) == len(axis.texts)


def test_a_name_is_nearest_to_its_own_point_or_a_line_leads_to_it() -> None:
    names = [f"kind, number {number}" for number in range(5)]
    cells = tuple(Cell(name) for name in names)
    places = ((1.0, 10.0), (1.02, 10.2), (1.04, 10.1), (1.05, 10.3), (3.0, 14.0))
    rows = {name: {"knn": {0: y}, "I_NCE": {0: x}} for name, (x, y) in zip(names, places, strict=True)}
    entry = replace(ENTRY, cells=(*ENTRY.cells, *cells), panels=(Panel("knn", {"": tuple(names)}, x_measure="I_NCE"),))
    figure = figure_of(boxes(entry, [("two cores", rows)]))
    (axis,) = (axis for axis in figure.axes if axis.get_visible())
    assert axis.get_title().startswith("kind: two cores, 1 seed")
    assert len(axis.texts) == 5
    figure.canvas.draw()
    marks = axis.transData.transform(places)
    for text in axis.texts:
        own = axis.transData.transform(text.xy)
        box = text.get_window_extent()
        apart = np.hypot(*(marks - np.clip(marks, (box.x0, box.y0), (box.x1, box.y1))).T)
        assert text.arrow_patch is not None or np.allclose(marks[apart.argmin()], own)
    assert sum(text.arrow_patch is not None for text in axis.texts) < 5


def test_floors_are_those_of_the_gates_whose_bases_a_panel_has() -> None:
    other = Gate("λ 1", ("plain",), "knn")
    claim = replace(ENTRY.claims[0], name="other", accuracy=True, gates=(other,))
    cells, claims = (*ENTRY.cells, Cell("plain")), (*ENTRY.claims, claim)
    terms = (("base", *WEIGHTS), ("λ 0", "λ 1"), ("λ 0", "λ .5"))
    panels = tuple(Panel("knn", {"": each}) for each in terms)
    entry = replace(ENTRY, cells=cells, claims=claims, panels=panels)
    both, own, neither = boxes(entry, [("two cores", NUMBERS | {"plain": {"knn": {0: 3.0}}})])
    assert (both.floor, own.floor, neither.floor) == ("floors (gray): 3 to 5", "floor: plain 3", "floor: raw 5")
    (axis,) = shapes((both,))
    (gray,) = (line for line in axis.lines if line.get_marker() == "|")
    assert gray.get_xydata().tolist() == [[5.0, 0.0], [3.0, 3.0]]


def test_long_labels_take_two_lines() -> None:
    assert in_two_lines("linear classifier, top-1 (%)") == "linear classifier,\ntop-1 (%)"
    assert in_two_lines("I_NCE (nats)") == "I_NCE (nats)"


def test_a_picture_of_no_cell_is_refused() -> None:
    with pytest.raises(UserError, match="there is no cell 'mine'"):
        replace(ENTRY, panels=(Panel("knn", {"": ("mine", "base")}),))


@pytest.mark.slow
def test_the_page_links_every_picture_that_exists_and_each_shows_the_results(repository: Path) -> None:
    results, pages = repository / "benchmarks" / "results" / "claims", repository / "docs"
    links = re.findall(r"\]\(([^)]+\.svg)\)", (pages / "claims.md").read_text())
    files = {str(path.relative_to(pages)) for path in (pages / PICTURES).iterdir()}
    assert links and len(set(links)) == len(links) and set(links) == files
    shown = overview_of(ENTRIES, results)
    assert description((pages / PICTURES / "overview.svg").read_bytes()) == overview_in_words(shown)
    for entry in ENTRIES:
        if points := picture_boxes(entry, results):
            content = (pages / PICTURES / f"{entry.name}.svg").read_bytes()
            assert description(content) == in_words(points), "run vantage reproduce --page docs/claims.md"
            assert len(content) < 100_000
