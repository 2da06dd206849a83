"""The index of rows by label: equal to a look at every row, also after rows moved and after labels were changed."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from vantage.records.members import Members


def members_of(members: Members, label: Tensor, labels_to_find: Tensor) -> list[list[list[int]]]:
    """Rows for each query and clustering."""
    start, size = members.find(label, labels_to_find)
    return [
        [members.rows(torch.arange(first, first + many)).tolist() for first, many in zip(*pair, strict=True)]
        for pair in zip(start.tolist(), size.tolist(), strict=True)
    ]


def members_by_loop(label: Tensor, labels_to_find: Tensor) -> list[list[list[int]]]:
    """The same by looking at every row."""
    rows = label.tolist()
    return [
        [[j for j, row in enumerate(rows) if row[c] == mine[c]] for c in range(len(mine))]
        for mine in labels_to_find.tolist()
    ]


def labels(rows: int, clusters: int, clusterings: int, seed: int) -> Tensor:
    return torch.randint(-1, clusters, (rows, clusterings), generator=torch.Generator().manual_seed(seed)) * 3


@given(rows=st.integers(1, 40), clusters=st.integers(0, 6), clusterings=st.integers(1, 3), seed=st.integers(0, 50))
def test_members_stand_in_order(rows: int, clusters: int, clusterings: int, seed: int):
    label = labels(rows, clusters, clusterings, seed)
    labels_to_find = labels(9, clusters + 2, clusterings, seed + 1)
    members = Members()
    for _ in range(2):
        assert members_of(members, label, labels_to_find) == members_by_loop(label, labels_to_find)
        label[seed % rows] = label[0]


@pytest.mark.parametrize("many", [1, 64])
@settings(max_examples=40)
@given(rows=st.integers(1, 60), clusters=st.integers(1, 6), steps=st.integers(1, 12), seed=st.integers(0, 50))
def test_moved_rows_are_followed(many: int, rows: int, clusters: int, steps: int, seed: int):
    """Whether the index follows or sorts again; rows may be named twice, and labels may be new."""
    label = labels(rows, clusters, 1, seed)
    truth, members, generator = label.clone(), Members(), torch.Generator().manual_seed(seed)
    labels_to_find = (torch.arange(clusters + 3) * 3 - 3)[:, None]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vantage.records.members._MANY", many)
        for _ in range(steps):
            assert members_of(members, label, labels_to_find) == members_by_loop(truth, labels_to_find)
            row = torch.randint(rows, (int(torch.randint(5, (), generator=generator)),), generator=generator)
            to = labels(len(row), clusters + 1, 1, int(torch.randint(99, (), generator=generator)))[:, 0]
            members.move(label[:, 0], row, to)
            for row_number, value in zip(row.tolist(), to.tolist(), strict=True):
                truth[row_number, 0] = value
            assert torch.equal(label, truth)


def test_nothing_is_sorted_where_rows_move(monkeypatch: pytest.MonkeyPatch):
    """400 steps, each of which moves 4 of 2,000 rows; the room is used up a few times only."""
    label, members = labels(2000, 20, 1, 0), Members()
    labels_to_find, sorts = label[:8].clone(), []
    sort = Members._sort
    monkeypatch.setattr(Members, "_sort", lambda self, label: (sorts.append(1), sort(self, label)))
    for step in range(400):
        start, size = members.find(label, labels_to_find)
        for mine, first, many in zip(labels_to_find[:, 0], start[:, 0], size[:, 0], strict=True):
            assert torch.equal(members.rows(first + torch.arange(int(many))), (label[:, 0] == mine).nonzero()[:, 0])
        generator = torch.Generator().manual_seed(step)
        row = torch.randint(2000, (4,), generator=generator)
        members.move(label[:, 0], row, label[torch.randint(2000, (4,), generator=generator), 0])
    assert 1 <= len(sorts) <= 3


def test_labels_changed_elsewhere_are_sorted_again():
    label, members = labels(30, 5, 1, 0), Members()
    labels_to_find = label[:6].clone()
    members_of(members, label, labels_to_find)
    for change in (label.zero_, lambda: label.copy_(labels(30, 4, 1, 3)), lambda: label[:, 0].add_(3)):
        change()
        assert members_of(members, label, labels_to_find) == members_by_loop(label, labels_to_find)
        members.move(label[:, 0], torch.tensor([2, 9]), torch.tensor([0, 3]))
        assert members_of(members, label, labels_to_find) == members_by_loop(label, labels_to_find)
    other = labels(12, 3, 2, 8)
    assert members_of(members, other, other[:4]) == members_by_loop(other, other[:4])
    members.move(other[:, 0], torch.tensor([2]), torch.tensor([3]))
    assert members_of(members, other, other[:4]) == members_by_loop(other, other[:4])
