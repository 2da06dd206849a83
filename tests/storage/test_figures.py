"""Figures as files."""

import re
from io import BytesIO

import matplotlib
from matplotlib.figure import Figure

from vantage.storage.figures import panels, picture


def test_coordinates_of_an_svg_are_rounded_and_texts_are_not() -> None:
    figure, axes = panels(1, 1, width=3.0, height=2.0)
    axes[0, 0].plot([0.123456, 1.98765], [1, 2])
    axes[0, 0].set_title("0.123456")
    with matplotlib.rc_context({"svg.fonttype": "none"}):
        svg = picture(figure, "svg", "1.234567 of it").decode()
    body = svg.partition("</metadata>")[2]
    coordinates = [
        number for text in re.findall(r' (?:d|x|y)="([^"]*)"', body) for number in re.findall(r"\.(\d+)", text)
    ]
    assert coordinates and max(map(len, coordinates)) == 2
    assert ">0.123456</text>" in body and "1.234567 of it" in svg and "\n " not in body


def test_letters_drawn_as_paths_keep_their_size() -> None:
    figure, _ = panels(1, 1, width=3.0, height=2.0)
    assert 'transform="scale(0.015625)"' in picture(figure, "svg").decode()


def test_a_style_is_written_once_and_every_shape_keeps_its_own() -> None:
    def drawn() -> Figure:
        figure, axes = panels(1, 1, width=3.0, height=2.0)
        axes[0, 0].plot([0, 1], [1, 2], color="#123456")
        axes[0, 0].set_title('a style="wide"')
        return figure

    full = BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "vantage"}):
        drawn().savefig(full, format="svg")
        svg = picture(drawn(), "svg").decode()
    styles = dict(re.findall(r"\n\.(s\w+) {([^}]*)}", svg))
    shapes = re.findall(r'<(?:path|use|text|rect)[^>]* (?:class|style)="([^"]*)"', svg)
    written = re.findall(r'<(?:path|use|text|rect)[^>]* style="([^"]*)"', full.getvalue().decode())
    assert [styles[name] for name in shapes] == written and len(styles) < len(shapes)
    assert 'a style="wide"</text>' in svg
