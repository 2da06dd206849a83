"""The text of errors that are quoted in messages."""

import pytest

from vantage.errors import first_line


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
