"""kNN against a loop that sorts everything, and edge cases."""

import math
from collections import defaultdict
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny import images, tiny_run, work
from torch import Tensor
from torch.nn.functional import normalize

from vantage.data.sources.source import SourceSubset
from vantage.errors import UserError
from vantage.evaluate import KNN, NearestNeighbor
from vantage.frozen.encoder import random_encoder
from vantage.measures import neighbors
from vantage.measures.neighbors import nearest


def data(bank: int, queries: int, width: int, classes: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    vectors = torch.randn(bank, width, generator=generator, dtype=torch.float64) * 3
    asked = torch.randn(queries, width, generator=generator, dtype=torch.float64)
    return vectors, torch.randint(0, classes, (bank,), generator=generator), asked


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
    st.integers(1, 40), st.integers(1, 9), st.integers(1, 8), st.integers(1, 12), st.integers(1, 40), st.integers(0, 99)
)
def test_votes_are_those_of_a_full_sort(bank, queries, width, classes, k, seed) -> None:
    k = min(k, bank)
    vectors, label, asked = data(bank, queries, width, classes, seed)
    guess = KNN(k, 0.2).predict(vectors, label, asked, classes)
    assert guess.shape == (queries, min(5, classes))
    for votes, row in zip(slow(vectors, label, asked, classes, k, 0.2), guess.tolist(), strict=True):
        best = sorted(votes, reverse=True)[: len(row)]
        assert [votes[number] if number >= 0 else 0 for number in row] == pytest.approx(best, rel=1e-9)
        named = [number for number in row if number >= 0]
        assert len(set(named)) == len(named) == sum(vote > 0 for vote in best)


@pytest.mark.parametrize("k", [1, 7, 60])
def test_tiles_of_the_bank_change_nothing(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors, _, asked = data(137, 29, 6, 3, seed=1)
    [(whole, near)] = list(nearest(vectors, asked, k))
    monkeypatch.setattr(neighbors, "_BANK", 10)
    monkeypatch.setattr(neighbors, "_QUERIES", 8)
    parts = list(nearest(vectors, asked, k))
    assert len(parts) == 4
    torch.testing.assert_close(torch.cat([cosine for cosine, _ in parts]), whole)
    assert torch.equal(torch.cat([number for _, number in parts]), near)


def test_unit_vectors_need_no_scaling_and_get_the_same_answer() -> None:
    vectors, _, asked = data(50, 5, 6, 3, seed=2)
    [(scaled, one)] = list(nearest(vectors, asked, 9))
    [(plain, other)] = list(nearest(normalize(vectors, dim=1), asked, 9))
    torch.testing.assert_close(scaled, plain)
    assert torch.equal(one, other)


def test_a_low_temperature_does_not_overflow() -> None:
    vectors, label, asked = data(30, 6, 4, 3, seed=3)
    found = KNN(10, 1e-4).predict(vectors.float(), label, asked.float(), 3)
    assert torch.equal(found[:, 0], NearestNeighbor().predict(vectors.float(), label, asked.float()))


def test_a_row_of_zeros_is_not_a_neighbor_and_not_an_error() -> None:
    bank = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    found = NearestNeighbor().predict(bank, torch.tensor([2, 0, 1]), torch.tensor([[2.0, 0.1], [0.1, 3.0]]))
    assert found.tolist() == [0, 1]


def test_more_neighbors_than_images_are_refused(tmp_path: Path) -> None:
    trained, train, test = random_encoder(tiny_run()), images(50, seed=0), images(7, seed=1)
    with pytest.raises(UserError, match="k = 200 needs as many .* there are 50: choose k of at most 50"):
        KNN()(trained, train, test, work(tmp_path))
    with pytest.raises(UserError, match="k is 0"):
        KNN(0)


def test_a_few_test_images_are_enough_and_easy_classes_are_distinguished(tmp_path: Path) -> None:
    trained, train, test = random_encoder(tiny_run()), images(60, seed=0, noise=10), images(7, seed=1, noise=10)
    for protocol in (KNN(5), NearestNeighbor()):
        found = protocol(trained, train, test, work(tmp_path))
        assert found.accuracy.top1 == 100.0 and found.accuracy.top5 is None
        assert (found.train_images, found.test_images) == (60, 7)


def test_classes_that_only_one_set_has(tmp_path: Path) -> None:
    trained, whole = random_encoder(tiny_run()), images(120, seed=0, classes=8, noise=5)
    train = SourceSubset(whole, [n for n in range(80) if n % 8 != 7])  # class 7, the last, is never seen in training
    test = SourceSubset(whole, [n for n in range(80, 120) if n % 8 in (6, 7)])
    found = KNN(5)(trained, train, test, work(tmp_path)).accuracy
    assert found.top1 == 50.0 and found.top5 == 50.0
    only = KNN(5)(trained, whole, SourceSubset(whole, range(0, 80, 8)), work(tmp_path)).accuracy  # one class is tested
    assert only.top1 == 100.0
