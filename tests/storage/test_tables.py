"""Tables: a cell with a mean and its deviation."""

import pytest

from vantage.storage.tables import Table, mean_and_deviation


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (mean_and_deviation(12.5, 0.421, 1), "12.5 ± 0.4"),
        (mean_and_deviation(7.0, None, 2), "7.00"),
        (mean_and_deviation(-0.001, 0.0, 2), "0.00 ± 0.00"),
        (mean_and_deviation(0.25, 0.5, 3, "+"), "+0.250 ± 0.500"),
        (mean_and_deviation(-0.25, None, 1, "+"), "-0.2"),
    ],
)
def test_a_mean_with_its_deviation(cell: str, words: str) -> None:
    assert cell == words


def test_cells_of_sentences_are_not_padded() -> None:
    table = Table(("claim", "n"), (("A long | sentence", "3"),))
    assert table.markdown(padded=False) == "| claim | n |\n| --- | --: |\n| A long \\| sentence | 3 |"
