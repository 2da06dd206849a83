"""kNN against a loop that sorts everything, and edge cases."""

import math
from collections import defaultdict
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import cpu_work, images, tiny_run
from torch import Tensor
from torch.nn.functional import normalize

from vantage.data.sources.subset import SourceSubset
from vantage.errors import UserError
from vantage.evaluate import KNN, NearestNeighbor
from vantage.frozen.encoder import random_encoder
from vantage.measures import neighbors
from vantage.measures.neighbors import nearest


def data(bank: int, queries: int, width: int, classes: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(bank, width, generator=generator, dtype=torch.float64) * 3
    query = torch.randn(queries, width, generator=generator, dtype=torch.float64)
    return vectors, torch.randint(0, classes, (bank,), generator=generator), query


def slow(bank: Tensor, label: Tensor, query: Tensor, classes: int, k: int, temperature: float) -> list[list[float]]:
    """Every vote, by sorting all cosines of every query."""
    votes = []
    for row in query:
        cosines = [float(row @ other / (row.norm() * other.norm())) for other in bank]
        order = sorted(range(len(bank)), key=lambda number: -cosines[number])
        tally: dict[int, float] = defaultdict(float)
        for number in order[:k]:
            tally[int(label[number])] += math.exp(cosines[number] / temperature)
        votes.append([tally[number] for number in range(classes)])
    return votes


@given(
    st.integers(1, 40), st.integers(1, 9), st.integers(2, 8), st.integers(1, 12), st.integers(1, 40), st.integers(0, 99)
)
def test_votes_are_those_of_a_full_sort(bank, queries, width, classes, k, seed) -> None:
    """Not of width 1, where all cosines are 1 or -1 and rounding decides between equal ones."""
    k = min(k, bank)
    vectors, label, query = data(bank, queries, width, classes, seed)
    guess = KNN(k, 0.2).predict(vectors, label, query, classes)
    assert guess.shape == (queries, min(5, classes))
    for votes, row in zip(slow(vectors, label, query, classes, k, 0.2), guess.tolist(), strict=True):
        best = sorted(votes, reverse=True)[: len(row)]
        assert [votes[number] if number >= 0 else 0 for number in row] == pytest.approx(best, rel=1e-9)
        answers = [number for number in row if number >= 0]
        assert len(set(answers)) == len(answers) == sum(vote > 0 for vote in best)


@pytest.mark.parametrize("k", [1, 7, 60])
def test_tiles_of_the_bank_change_nothing(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _, query = data(137, 29, 6, 3, seed=1)
    [(whole, near)] = list(nearest(vectors, query, k))
    monkeypatch.setattr(neighbors, "_BANK", 10)
    monkeypatch.setattr(neighbors, "_QUERIES", 8)
    parts = list(nearest(vectors, query, k))
    assert len(parts) == 4
    torch.testing.assert_close(torch.cat([cosine for cosine, _ in parts]), whole)
    assert torch.equal(torch.cat([number for _, number in parts]), near)


def test_unit_vectors_need_no_scaling_and_get_the_same_answer() -> None:
    vectors, _, query = data(50, 5, 6, 3, seed=2)
    [(from_lengths, one)] = list(nearest(vectors, query, 9))
    [(plain, other)] = list(nearest(normalize(vectors, dim=1), query, 9))
    torch.testing.assert_close(from_lengths, plain)
    assert torch.equal(one, other)


def test_a_low_temperature_does_not_overflow() -> None:
    vectors, label, query = data(30, 6, 4, 3, seed=3)
    classes = KNN(10, 1e-4).predict(vectors.float(), label, query.float(), 3)
    assert torch.equal(classes[:, 0], NearestNeighbor().predict(vectors.float(), label, query.float()))


def test_a_row_of_zeros_is_not_a_neighbor_and_not_an_error() -> None:
    bank = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    classes = NearestNeighbor().predict(bank, torch.tensor([2, 0, 1]), torch.tensor([[2.0, 0.1], [0.1, 3.0]]))
    assert classes.tolist() == [0, 1]


def test_more_neighbors_than_images_are_refused(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), images(50, seed=0), images(7, seed=1)
    with pytest.raises(UserError, match="k = 200 needs as many .* there are 50: choose k of at most 50"):
        KNN()(encoder, train, test, cpu_work(tmp_path))
    with pytest.raises(UserError, match="of at most 50, such as --k 20$"):  # all 50 would vote for every image
        KNN()(encoder, train, test, cpu_work(tmp_path))
    with pytest.raises(UserError, match="k is 0"):
        KNN(0)


def test_a_few_test_images_are_enough_and_easy_classes_are_distinguished(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), images(60, seed=0, noise=10), images(7, seed=1, noise=10)
    for protocol in (KNN(5), NearestNeighbor()):
        outcome = protocol(encoder, train, test, cpu_work(tmp_path))
        assert outcome.accuracy.top1 == 100.0 and outcome.accuracy.top5 is None
        assert (outcome.train_images, outcome.test_images) == (60, 7)


def test_classes_that_only_one_set_has(tmp_path: Path) -> None:
    encoder, whole = random_encoder(tiny_run()), images(120, seed=0, classes=8, noise=5)
    train = SourceSubset(whole, [n for n in range(80) if n % 8 != 7])  # class 7, the last, is never seen in training
    test = SourceSubset(whole, [n for n in range(80, 120) if n % 8 in (6, 7)])
    accuracy = KNN(5)(encoder, train, test, cpu_work(tmp_path)).accuracy
    assert accuracy.top1 == 50.0 and accuracy.top5 == 50.0
    only = KNN(5)(
        encoder, whole, SourceSubset(whole, range(0, 80, 8)), cpu_work(tmp_path)
    ).accuracy  # one class is tested
    assert only.top1 == 100.0
