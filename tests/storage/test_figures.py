"""Figures as files."""

import re

import matplotlib

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
