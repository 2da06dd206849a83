from pathlib import Path

import numpy as np
import pytest
import torch

from vantage.data import labels_of
from vantage.memory import LabeledBank
from vantage.studies.lab import ENTRIES, Arm, ImageSets
from vantage.studies.lab.entries.interclr_arms import with_true_classes
from vantage.studies.lab.measures.class_structure import commonest, same_kind, stale_labels, true_mates


def test_the_commonest_class_by_counting() -> None:
    label = torch.randint(0, 4, (20, 7), generator=torch.Generator().manual_seed(0))
    largest = [max(row.count(one) for one in row) / 7 for row in label.tolist()]
    assert commonest(label) == pytest.approx(100 * np.mean(largest))


def test_the_kinds_of_the_neighbors_of_failures_by_counting() -> None:
    generator = torch.Generator().manual_seed(0)
    label = torch.randint(0, 5, (60,), generator=generator)
    own, number = (torch.randint(0, high, size, generator=generator) for high, size in ((5, (30,)), (60, (30, 4))))
    found, chance = [], []
    for query, neighbors in zip(own.tolist(), number.tolist(), strict=True):
        if query in label[neighbors].tolist():
            continue
        of_others = [one for one in label.tolist() if one != query]
        found.append(np.mean([(int(label[one]) in (0, 3)) == (query in (0, 3)) for one in neighbors]))
        chance.append(np.mean([(one in (0, 3)) == (query in (0, 3)) for one in of_others]))
    numbers = same_kind(label, number, own, torch.tensor([0, 3]))
    assert 0 < len(found) < 30
    assert numbers["superclass of failures"] == pytest.approx(100 * np.mean(found))
    assert numbers["superclass by chance"] == pytest.approx(100 * np.mean(chance))
    assert same_kind(label, torch.arange(60)[:, None], label, torch.tensor([0])) == {}  # each is its own neighbor


def test_mates_and_stale_labels_by_hand() -> None:
    label, true = torch.tensor([0, 0, 0, 1, 1, 2]), torch.tensor([5, 5, 6, 7, 8, 5])
    assert true_mates(label, true) == pytest.approx((0.5 + 0.5 + 0 + 0 + 0) / 5)  # the last has no mate
    vector = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9], [0.8, 0.2]])
    assert stale_labels(vector, torch.tensor([0, 0, 1, 1, 0])) == 0.0
    assert stale_labels(vector, torch.tensor([0, 0, 1, 1, 1])) == pytest.approx(1 / 5)  # the last is nearer to 0


def test_every_arm_of_interclr_continues_one_base_whose_rows_are_clustered_anew() -> None:
    entries = [e for e in ENTRIES if e.name.startswith("interclr") and e.runnable_cells]
    arms = [
        cell.experiment
        for e in entries
        for cell in e.runnable_cells
        if isinstance(cell.experiment, Arm) and cell.experiment.start
    ]
    assert len(entries) == 11 and len(set(arms)) == 22
    bases = {arm.start for arm in arms if arm.start}
    assert sorted(base.images for base in bases) == ["cifar-10", "tiny-imagenet-50"]
    (base,) = {base.run for base in bases}
    memories = {arm.run.branches[0].memory for arm in arms}
    assert base.branches[0].memory not in memories
    assert {(arm.run.epochs, arm.run.monitoring.keep_every) for arm in arms} == {(12, 0), (12, 1)}
    assert {type(memory).__name__ for memory in memories} == {"ClusteredBank", "ReclusteredBank", "LabeledBank"}


def test_the_control_of_interclr_has_the_true_classes_as_clusters(shared_data: Path) -> None:
    """Training images are sorted by class, with equally many of each."""
    control = with_true_classes(0.5)
    sets = ImageSets({control.images: str(shared_data / "tiny-imagenet-50.tar.gz")})
    train = sets.split(control.images, control.run.data).train
    (memory,) = {branch.memory for branch in control.run.branches if isinstance(branch.memory, LabeledBank)}
    assert torch.equal(memory.build(len(train), 2).label[:, 0], labels_of(train))
