"""Facts of planted features."""

import pytest
import torch
from known_curves import features

from vantage.curation.neighbors import neighbors_of
from vantage.report.image_facts import best_and_worst, spectrum

LABEL = torch.arange(40) // 10


def test_best_and_worst_queries_follow_the_labels() -> None:
    label = LABEL.clone()
    label[7] = 3  # a planted mistake: it lies among images of class 0
    best, worst = best_and_worst(neighbors_of(features()), label, 4, {2, 3})
    assert sorted(label[best].tolist()) == [0, 1, 2, 3]  # one of each class
    assert worst[0] in (7, 39) and 7 in worst and 7 not in best
    assert not {2, 3} & set(best)


def test_without_labels_the_nearest_are_best_and_the_farthest_worst() -> None:
    neighbors = neighbors_of(features())
    best, worst = best_and_worst(neighbors, torch.full((40,), -1), 3)
    mean = neighbors.cosine.mean(1)
    assert best == mean.argsort(descending=True)[:3].tolist() and worst == mean.argsort()[:3].tolist()
    unlabeled = torch.where(torch.arange(40) < 20, LABEL, -1)
    for numbers in best_and_worst(neighbors, unlabeled, 40):
        assert set(numbers) <= set(range(20))


def test_the_spectrum_is_that_of_the_covariance() -> None:
    vector = features() + 5
    expected = torch.linalg.eigvalsh(torch.cov(vector.double().T)).flip(0)
    result = spectrum(vector)
    assert result.share == pytest.approx((expected / expected.sum()).tolist(), abs=1e-9)
    shares = torch.tensor(result.share)
    assert float(shares[: result.most].sum()) >= 0.9 > float(shares[: result.most - 1].sum())
    flat = spectrum(torch.ones(30, 4))
    assert sum(flat.share) == 0 and flat.most == 0 and flat.rank == pytest.approx(1, abs=0.01)
