"""Segmentation of mosaics as a measure of the lab, what it costs, and the entries that ask for it."""

from dataclasses import replace
from pathlib import Path

import pytest
from test_entries import entry_of
from test_lab_measures import subject_of
from test_lab_transfer import colored_images

from vantage.data.sources.mosaics import Mosaics
from vantage.errors import UserError
from vantage.evaluate import Segmentation
from vantage.studies.lab import Cell, Entry, Untrained, WorkOrder, smoke
from vantage.studies.lab.making.compositions import arm_chain, composition
from vantage.studies.lab.making.cost import estimate_workload
from vantage.studies.lab.measures.mosaics import MosaicSegmentation
from vantage.studies.lab.measures.vectors import ProtocolAccuracy
from vantage.studies.lab.sets import Split
from vantage.training.run import Data

QUICK = MosaicSegmentation(
    ("mnist",), Segmentation(width=8, epochs=12, batch_size=4), side=16, mosaics=16, test_mosaics=6
)


@pytest.mark.slow
def test_the_measure_is_the_protocol_on_mosaics_of_the_seed(tmp_path: Path) -> None:
    """Training mosaics are of training images, test mosaics of test images, and nothing stays on disk."""
    names: list[tuple[str, Data]] = []
    train, test, subject = colored_images(40), colored_images(24), replace(subject_of(tmp_path / "cache"), seed=3)

    def other(name: str, data: Data) -> Split:
        names.append((name, data))
        return Split(train, train, test)

    numbers = QUICK(replace(subject, other=other))
    assert names == [("mnist", Data())] and not (tmp_path / "cache").exists()
    protocol = replace(QUICK.protocol, size=32, seed=3)
    parts = Mosaics(train, 16, 3, side=16), Mosaics(test, 6, 3, side=16)
    assert numbers == protocol(subject.encoder, *parts, subject.work).measures
    assert list(numbers)[0] == "mIoU" and numbers["pixel accuracy"] > 30  # each class has its own shade


def test_mosaics_are_not_divided_into_training_and_test_images() -> None:
    mosaics = Mosaics(colored_images(16), 4, 0, side=8)
    with pytest.raises(UserError, match="cannot divide Mosaics: name a test set"):
        Segmentation().task(mosaics, None)
    task = Segmentation().task(mosaics, Mosaics(colored_images(16), 4, 1, side=8))
    assert task.train is mosaics


def test_its_cost_is_part_of_the_time(tmp_path: Path) -> None:
    """A measurement costs what the measure says; at the smoke level, all cost a little for opening files besides."""
    cell = entry_of("jcl-table-2").cell("random")
    assert isinstance(cell.experiment, Untrained)
    measures = (MosaicSegmentation(), ProtocolAccuracy())
    entry = smoke(Entry("one", "A", "Table 1", "a baseline", (), (Cell("random", cell.experiment, measures),)))
    maker = WorkOrder((entry,), (0,), tmp_path, (), True, "cpu").maker()
    mosaics, accuracy = (estimate_workload(maker, [one], lambda arm: 1.0).seconds for one in maker.pieces(entry, (0,)))
    small = entry.cells[0].measures[0]
    assert isinstance(small, MosaicSegmentation) and mosaics > accuracy + small.passes
    assert accuracy > 0 and mosaics < 20_000
    sets = maker.dependencies(maker.pieces_of(entry.cells[0], 0)[0])["others"]
    split = maker.sets.split("cifar-10", Data())
    assert sets == [list(split.fingerprints)]  # the numbers depend on these images too
    assert small.passes < MosaicSegmentation().passes / 50


def test_cells_share_their_runs_with_the_tables_they_come_from() -> None:
    for here, there, names in (
        ("jcl-table-2", "jcl-table-1", {"random": "random encoder", "MoCo v2": "MoCo v2", "JCL": "JCL"}),
        (
            "cnce-table-4",
            "cnce-table-1",
            {name: name for name in ("random encoder", "IR", "IRing", "MoCo", "MoCoRing")},
        ),
    ):
        entry, other = entry_of(here), entry_of(there)
        assert {cell.name for cell in entry.runnable_cells} == set(names)
        for name, original in names.items():
            mine, theirs = entry.cell(name).experiment, other.cell(original).experiment
            assert composition(mine) == composition(theirs) and arm_chain(mine) == arm_chain(theirs)
