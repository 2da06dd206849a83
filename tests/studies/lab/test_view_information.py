from dataclasses import replace
from pathlib import Path

import pytest
from lab_entries import entry_of
from test_lab_measures import subject_of

from vantage.composition.fitting import parts_of
from vantage.encoders import Convolutions, ResNet9
from vantage.studies.analyse.held_out import HeldOutInformation
from vantage.studies.lab import ENTRIES, Arm
from vantage.studies.lab.levels import one_gpu
from vantage.studies.lab.measures.view_information import ViewInformation
from vantage.studies.lab.two_cores import at_papers_rate


def test_shared_information_is_that_of_the_first_branch_on_test_images(tmp_path: Path) -> None:
    subject = subject_of(tmp_path)
    numbers = ViewInformation(images=30, draws=2)(subject)
    (branch,) = HeldOutInformation(images=30, draws=2, seed=0).of(subject.networks(), subject.split.test, subject.work)
    assert numbers == {"I_NCE": pytest.approx(branch.nats)} and branch.negatives == 29


def test_two_sweeps_share_a_cell_but_for_its_learning_rate() -> None:
    by_name = {entry.name: entry for entry in ENTRIES}
    crop, jitter = (by_name[f"infomin-figure-{number}"] for number in (13, 14))
    for head in ("MLP", "linear"):
        arm = crop.cell(f"{head}, c .2").experiment
        assert isinstance(arm, Arm)
        assert replace(arm, run=at_papers_rate(arm.run)) == jitter.cell(f"{head}, x .5").experiment != arm
    arms = {
        cell.experiment for entry in (crop, jitter) for cell in entry.runnable_cells if isinstance(cell.experiment, Arm)
    }
    assert len(arms) == 20 and not any(arm.start for arm in arms)


def test_encoders_of_channels_stay_such_on_a_gpu() -> None:
    entry = entry_of("infomin-figure-4")
    for experiment in (entry.cell("Lab").experiment, one_gpu(entry).cell("Lab").experiment):
        assert isinstance(experiment, Arm)
        backbones = [part for part in parts_of(experiment.run.encoders) if isinstance(part, Convolutions | ResNet9)]
        assert [one.in_channels for one in backbones] == [1, 2]
