"""What is planted in features is found, and every search equals a slow loop."""

import pytest
import torch
from known_curves import features

from vantage.curation.duplicates import Duplicates, groups, leaks, near_duplicates, various_pairs
from vantage.curation.mistakes import mistakes
from vantage.curation.neighbors import neighbors_among, neighbors_of
from vantage.curation.outliers import outliers
from vantage.curation.representatives import cluster_centers, k_centers
from vantage.errors import UserError
from vantage.measures import neighbors as tables

LABEL = torch.arange(40) // 10


def copies(count: int, noise: float = 0.0) -> torch.Tensor:
    """Forty vectors, and copies of the last but one, each moved a little."""
    chance = torch.Generator().manual_seed(1)
    vector = features()
    copies_of_one = vector[38:39] + noise * torch.randn(count, 12, generator=chance)
    return torch.cat([vector, torch.nn.functional.normalize(copies_of_one, dim=1)])


def test_neighbors_are_those_of_a_loop() -> None:
    vector = features()
    neighbors = neighbors_of(3 * vector, 5)  # of any length
    for number in range(40):
        cosines = [(-float(vector[number] @ vector[other]), other) for other in range(40) if other != number]
        expected = pytest.approx([-cosine for cosine, _ in sorted(cosines)[:5]], abs=1e-6)
        assert neighbors.cosine[number].tolist() == expected
        assert (vector[neighbors.number[number]] @ vector[number]).tolist() == expected
        assert len({number, *neighbors.number[number].tolist()}) == 6
    some = neighbors_of(3 * vector, 5, numbers=torch.tensor([7, 3]))
    assert torch.equal(some.number, neighbors.number[[7, 3]])
    assert torch.equal(neighbors_among(vector, vector[[4]], 1).number, torch.tensor([[4]]))


def test_no_image_is_its_own_neighbor_even_among_copies() -> None:
    neighbors = neighbors_of(torch.ones(30, 4), 10)
    assert neighbors.number.shape == (30, 10)
    assert not bool((neighbors.number == torch.arange(30)[:, None]).any())
    assert neighbors_of(torch.eye(3), 10).number.shape == (3, 2)


def test_a_planted_copy_is_the_one_near_duplicate() -> None:
    neighbors = neighbors_of(features())
    duplicates = near_duplicates(neighbors)
    assert duplicates.pair.tolist() == [[2, 3]] and not duplicates.same
    group = groups(duplicates, neighbors, features())
    assert group.tolist() == [0 if number in (2, 3) else -1 for number in range(40)]
    same = neighbors_of(torch.ones(30, 4))
    assert near_duplicates(same).same
    assert groups(near_duplicates(same), same, torch.ones(30, 4)).tolist() == [0] * 30
    assert near_duplicates(neighbors_of(torch.eye(5))).pair.shape == (0, 2)


def ratios_by_loop(vector: torch.Tensor) -> list[list[float]]:
    """The distance of any two images beside the mean distance of either to its ten nearest, which is at least a quarter
    of the median."""
    distance = (1 - vector @ vector.T).clamp(min=0).tolist()
    count = len(distance)
    means = []
    for one in range(count):
        means.append(sum(sorted(distance[one][other] for other in range(count) if other != one)[:10]) / 10)
    scale = [max(mean, sorted(means)[(count - 1) // 2] / 4) for mean in means]
    return [[distance[one][other] / min(scale[one], scale[other]) for other in range(count)] for one in range(count)]


def test_ratios_and_groups_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "_QUERIES", 8)
    monkeypatch.setattr(tables, "_BANK", 16)
    vector = copies(30, 0.01)  # more copies than an image has neighbors
    neighbors = neighbors_of(vector)
    duplicates = near_duplicates(neighbors, 0.4)
    expected = ratios_by_loop(vector)
    for (one, other), ratio in zip(duplicates.pair.tolist(), duplicates.ratio.tolist(), strict=True):
        assert one < other and (ratio == pytest.approx(expected[one][other], rel=1e-2) or ratio == 0)
    assert duplicates.ratio.tolist() == sorted(duplicates.ratio.tolist())
    group_of = {number: {number} for number in range(len(vector))}
    for one in range(len(vector)):
        for other in range(one):
            if expected[one][other] <= 0.4:
                whole = group_of[one] | group_of[other]
                group_of.update(dict.fromkeys(whole, whole))
    group = groups(duplicates, neighbors, vector)
    for number in range(len(vector)):
        group_with_number = (
            {number} | set((group == group[number]).nonzero()[:, 0].tolist()) if group[number] >= 0 else {number}
        )
        assert group_with_number == group_of[number]
    assert len(group_of[38]) == 31


def test_chains_go_on_beyond_the_neighbors_of_an_image() -> None:
    clumps = torch.eye(12)[[0, 1]].repeat_interleave(24, 0)
    vector = torch.cat([clumps, features()])
    neighbors = neighbors_of(vector, 3)
    group = groups(near_duplicates(neighbors), neighbors, vector)
    assert len(group[:24].unique()) == len(group[24:48].unique()) == 1 and group[0] != group[24]


def test_the_surest_pair_of_each_chain_is_shown_first() -> None:
    pair = torch.tensor([[0, 1], [1, 2], [4, 5], [0, 2], [7, 8]])
    gaps = torch.linspace(0.1, 0.2, 5)
    duplicates = Duplicates(0.25, pair, gaps, gaps, False)
    assert various_pairs(duplicates, 9, 4) == [0, 2, 4, 1]
    assert various_pairs(duplicates, 9, 12) == [0, 2, 4, 1, 3]
    assert various_pairs(Duplicates(0.25, pair[:0], gaps[:0], gaps[:0], False), 9, 4) == []


def test_leaks_are_the_nearest_of_the_other_set() -> None:
    train, test = features()[:30], features()[30:]
    test = torch.cat([test, train[4:5] + 0.01])
    nearest = leaks(train, test)
    cosine = torch.nn.functional.normalize(test, dim=1) @ train.T
    assert torch.equal(nearest.number, cosine.argmax(1)) and int(nearest.ratio.argmin()) == 10
    assert (nearest.ratio <= 0.25).tolist() == [False] * 10 + [True]


def test_a_planted_stranger_is_the_one_outlier() -> None:
    far = outliers(neighbors_of(features(), 5))
    assert far.number[0] == 39 and far.count == 1
    assert float(far.score[39]) > far.limit > float(far.score[far.number[1]])


def test_a_planted_mistake_is_the_one_mistake() -> None:
    label = LABEL.clone()
    label[7] = 3
    neighbors = neighbors_of(features(), 6)
    doubts = mistakes(neighbors, label, 5)  # no image is of the last class
    assert doubts.is_mistake[:39].nonzero().tolist() == [[7]] and int(doubts.suggestion[7]) == 0
    weight = (neighbors.cosine[7] / 0.07).exp()
    votes = [float(weight[label[neighbors.number[7]] == one].sum() / weight.sum()) for one in range(5)]
    assert float(doubts.score[7]) == pytest.approx(votes[0] - votes[3], abs=1e-6)
    label[7] = 4  # now its only image, with which no neighbor can agree
    assert not bool(mistakes(neighbors, label, 5).is_mistake[7])


def test_k_centers_are_those_of_a_loop() -> None:
    vector = features()
    centers = k_centers(2 * vector, 6)
    numbers = [int((vector @ vector.sum(0)).argmax())]
    while len(numbers) < 6:
        numbers.append(int((vector @ vector[numbers].T).amax(1).argmin()))
    assert centers.number.tolist() == numbers and 39 in numbers[:5]
    assert int(centers.coverage.sum()) == 40
    for position, gap in enumerate(centers.distance.tolist()):
        assert gap == pytest.approx(
            1 - float((vector[numbers[position]] @ vector[numbers[:position]].T).max()) if position else 0.0, abs=1e-6
        )
    assert sorted(k_centers(torch.ones(5, 3), 5).number.tolist()) == [0, 1, 2, 3, 4]
    assert k_centers(vector, 3, torch.tensor([9, 8])).number[:2].tolist() == [9, 8]


def test_cluster_centers_take_one_image_of_each_cluster() -> None:
    vector = features()[:39]
    centers = cluster_centers(vector, 4, seed=3)
    assert int(centers.coverage.sum()) == 39 and centers.coverage.tolist() == sorted(
        centers.coverage.tolist(), reverse=True
    )
    assert len(set(centers.number.tolist())) == 4
    same = cluster_centers(torch.ones(8, 3), 5)  # but one cluster can be told apart
    assert len(set(same.number.tolist())) == 5
    for count in (0, 40):
        with pytest.raises(UserError, match="ask for 1 to 39"):
            k_centers(vector, count)
