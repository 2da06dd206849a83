"""Tables: a cell with a mean and its deviation."""

from statistics import stdev

import pytest

from vantage.storage.tables import Mean, Table


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (Mean(12.5, 0.421).words(1), "12.5 ± 0.4"),
        (Mean(7.0, None).words(2), "7.00"),
        (Mean(-0.001, 0.0).words(2), "0.00 ± 0.00"),
        (Mean(0.25, 0.5).words(3, "+"), "+0.250 ± 0.500"),
        (Mean(-0.25, None).words(1, "+"), "-0.2"),
    ],
)
def test_a_mean_with_its_deviation(cell: str, words: str) -> None:
    assert cell == words


def test_a_single_value_has_no_deviation() -> None:
    assert Mean.of([7.0]) == Mean(7.0, None) and Mean.of([7.0]).bar == 0.0
    several = Mean.of((1.0, 2.0, 6.0))
    assert several == Mean(3.0, stdev((1.0, 2.0, 6.0))) and several.bar == several.deviation


def test_cells_of_sentences_are_not_padded() -> None:
    table = Table(("claim", "n"), (("A long | sentence", "3"),))
    assert table.markdown(padded=False) == "| claim | n |\n| --- | --: |\n| A long \\| sentence | 3 |"
