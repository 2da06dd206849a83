"""The search by faiss finds what the search by torch finds, and is used for many queries only."""

import sys

import pytest
import torch
from torch.nn.functional import normalize

from vantage.curation import faiss_search, neighbors
from vantage.curation.faiss_search import faiss_is_faster, nearest_by_faiss
from vantage.curation.neighbors import neighbors_among, neighbors_of
from vantage.measures import nearest

pytest.importorskip("faiss", reason="the extra faiss is not installed")

QUERIES, BANK, WIDTH = 1100, 1300, 24


def random_features(count: int, seed: int) -> torch.Tensor:
    """Features of any length, of which one is zero."""
    vector = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed))
    vector[5] = 0
    return vector * torch.linspace(0.5, 2, count)[:, None]


def test_both_searches_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss_search, "_QUERIES", 400)  # so that both queries and bank are searched in several parts
    monkeypatch.setattr(faiss_search, "_BANK", 500)
    bank, query = random_features(BANK, 0), random_features(QUERIES, 1)
    expected = [torch.cat(parts) for parts in zip(*nearest(bank, query, 7), strict=True)]
    found = [torch.cat(parts) for parts in zip(*nearest_by_faiss(bank, query, 7), strict=True)]
    torch.testing.assert_close(found[0], expected[0])
    cosine = (normalize(query, dim=1)[:, None] * normalize(bank, dim=1)[found[1]]).sum(2)
    torch.testing.assert_close(cosine, expected[0], atol=1e-6, rtol=1e-5)
    assert (found[1] == expected[1])[torch.arange(QUERIES) != 5].float().mean() > 0.999  # equal cosines may swap


def test_more_neighbors_than_a_part_of_the_bank_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faiss_search, "_BANK", 4)
    bank, query = random_features(10, 0), random_features(9, 1)
    for k in (6, 10):
        cosine, number = next(nearest_by_faiss(bank, query, k))
        torch.testing.assert_close(cosine, next(nearest(bank, query, k))[0])
        assert all(len(set(row)) == k for row in number.tolist())
    assert neighbors_among(bank, query[:0], 3).number.shape == (0, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="faiss is used on Linux only")
def test_it_is_used_for_many_queries_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    bank, query = random_features(BANK, 0), random_features(QUERIES, 1)
    assert faiss_is_faster(bank, query)
    assert not faiss_is_faster(bank, query[:10])
    assert not faiss_is_faster(bank.double(), query.double())
    assert not faiss_is_faster(bank.to("meta"), query.to("meta"))
    calls = []
    monkeypatch.setattr(neighbors, "nearest_by_faiss", lambda *args: calls.append(args) or nearest_by_faiss(*args))
    others = neighbors_of(bank, 3)
    assert len(calls) == 1 and not bool((others.number == torch.arange(BANK)[:, None]).any())
    neighbors_among(bank, query[:10], 3)
    assert len(calls) == 1
    monkeypatch.setattr(faiss_search, "find_spec", lambda _: None)
    torch.testing.assert_close(neighbors_of(bank, 3).cosine, others.cosine)
    assert len(calls) == 1
