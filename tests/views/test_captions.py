"""Words in pictures."""

import numpy as np
import pytest
from PIL import Image, ImageDraw

from vantage.views.captions import write


def drawn(words: str) -> np.ndarray:
    """The pixels of a line of text."""
    whole = Image.new("L", (80, 20), "white")
    write(ImageDraw.Draw(whole), (0, 0), words, 80, "black")
    return np.asarray(whole)


@pytest.mark.parametrize("letter", ["ü", "ß", "é", "ł", "ж", "λ"])
def test_letters_of_file_names_are_drawn_and_not_replaced_by_a_box(letter: str) -> None:
    missing = drawn("\uffff")  # no font has this character
    assert (missing != drawn(" ")).any() and (drawn(letter) != missing).any()
