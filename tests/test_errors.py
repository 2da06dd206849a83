"""The text of errors that are quoted in messages."""

import pytest

from vantage.errors import first_line, quantity


@pytest.mark.parametrize(
    ("error", "most", "expected"),
    [
        (ValueError("one\ntwo"), None, "one"),
        (ValueError("\n  one\ntwo"), 2, "on"),
        (AssertionError(), None, "AssertionError"),
        (KeyError(" "), 3, "' '"),
    ],
)
def test_the_first_line_of_an_error(error: Exception, most: int | None, expected: str) -> None:
    assert first_line(error, most) == expected


def test_one_thing_is_not_several() -> None:
    assert [quantity(count, "image") for count in (0, 1, 2_000)] == ["0 images", "1 image", "2,000 images"]
    assert [quantity(count, "class", "classes") for count in (1, 2)] == ["1 class", "2 classes"]
