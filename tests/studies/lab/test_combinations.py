"""What the arms of the entry that is ours have in common, and what each of them lacks."""

from vantage.studies.lab import ENTRIES, Arm
from vantage.studies.lab.levels import one_gpu
from vantage.studies.lab.making.compositions import arm_chain

MISSING = {
    "MoCo v2": ["JCL(", "Ring(", "ClusteredBank(", "Jigsaw("],
    "everything": [],
    "without JCL's keys": ["JCL("],
    "without Ring's negatives": ["Ring("],
    "without InterCLR's clusters": ["ClusteredBank("],
    "without InfoMin's views": ["Jigsaw("],
}
"""What each arm lacks."""


def test_everything_is_compared_with_one_part_less_from_one_base() -> None:
    (entry,) = (entry for entry in ENTRIES if entry.name == "ours-everything")
    arms = {cell.name: cell.experiment for cell in entry.runnable_cells if isinstance(cell.experiment, Arm)}
    branches = {name: arm for name, arm in arms.items() if arm.start}
    assert len(branches) == 6 and {repr(arm.start) for arm in branches.values()} == {repr(arms["base"])}
    assert {arm.images for arm in arms.values()} == {"cifar-10"}
    lengths = {name: [len(arm.run.branches), arm.run.views.count] for name, arm in branches.items()}
    assert lengths == {
        "MoCo v2": [1, 2],
        "everything": [3, 7],
        "without JCL's keys": [3, 3],
        "without Ring's negatives": [3, 7],
        "without InterCLR's clusters": [2, 7],
        "without InfoMin's views": [2, 6],
    }
    for name, arm in branches.items():
        weights = [one.weight(0) for one in arm.run.branches]
        assert sum(weights) == 1.0, name
        has = {kind: kind in repr(arm.run) for kind in ("JCL(", "Ring(", "ClusteredBank(", "Jigsaw(")}
        assert [kind for kind, there in has.items() if not there] == MISSING[name]
    larger = one_gpu(entry).cell("everything").experiment
    assert "ResNet9(width=32" in repr(larger) and "ResNet9(width=16" not in repr(larger)
    assert all(one.run.data.max_images == 22_500 for one in arm_chain(larger))
