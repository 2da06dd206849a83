"""The announced time of the lab: speeds are measured on the entries' own networks, and the time left by the pace so
far."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from vantage.encoders import Convolutions, ResNet9
from vantage.recipes import jcl, moco_v2
from vantage.studies.lab import Cell, Entry, ImageSets, WorkOrder, smoke
from vantage.studies.lab.entries.cnce_toys import TABLE_5
from vantage.studies.lab.experiments.toys import NegativeSpread
from vantage.studies.lab.making import cost
from vantage.studies.lab.making.cost import Remaining, TrainingSpeeds, Workload, forward_passes, time_per_seed
from vantage.studies.lab.making.maker import Maker
from vantage.studies.lab.making.store import LabFolder
from vantage.studies.lab.two_cores import Scale, base
from vantage.training.run import Run

SMALL = base(moco_v2(32), scale=Scale(images=64))
LARGE = base(moco_v2(32), scale=Scale(images=64, backbone=ResNet9(8)))
COUNTS = (4, 8, 12)
TOYS = tuple(Cell(f"toy {count}", NegativeSpread((0.0,), (count,))) for count in COUNTS)
ENTRY = smoke(Entry("an-entry", "A", "Table 1", "three toys", (), TOYS))


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The backbones whose steps were timed; a step of four convolutions takes a second, any other step four."""
    timed: list[str] = []

    def measured(run: Run, source: object, seconds: float) -> object:
        small = "Convolutions" in repr(run.encoders)
        timed.append("Convolutions" if small else "ResNet9")
        return type("Measured", (), {"step": 1.0 if small else 4.0})()

    monkeypatch.setattr(cost, "measure_speed", measured)
    monkeypatch.setattr(cost, "passes_per_second", lambda: 1_000.0)
    return timed


def maker_at(folder: Path, is_small: bool) -> Maker:
    sets = ImageSets({}, smoke=True)
    maker = Maker(LabFolder(folder), sets)
    for arm in (SMALL, LARGE):
        maker.split(arm)  # opened while photographs stand for every set
    sets.smoke = is_small
    return maker


def test_each_network_is_timed_once_by_its_own_steps(steps: list[str], tmp_path: Path) -> None:
    speeds = TrainingSpeeds(maker_at(tmp_path, False))
    small, large, again = speeds(SMALL), speeds(LARGE), speeds(replace(SMALL, run=replace(SMALL.run, epochs=9)))
    assert small == again == 4 * large == SMALL.run.batch_size * forward_passes(SMALL.run)
    assert steps == ["Convolutions", "ResNet9"]
    more_keys = replace(SMALL, run=replace(jcl(32), batch_size=64, encoders=SMALL.run.encoders))
    assert speeds(more_keys) == small, "a forward pass costs the same in every loss of one network"
    assert speeds(None) == 1_000.0


def test_smoke_does_not_train_to_learn_its_speed(steps: list[str], tmp_path: Path) -> None:
    speeds = TrainingSpeeds(maker_at(tmp_path, True))
    assert (speeds(SMALL), speeds(LARGE), steps) == (1_000.0, 1_000.0, [])
    assert isinstance(SMALL.run.encoders.encoder.backbone, Convolutions)  # type: ignore


class Recording(nn.Module):
    """A network that records whether it computes in bfloat16."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.half = nn.Conv2d(3, 1, 1), list[bool]()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        result = self.layer(images)
        self.half.append(result.dtype == torch.bfloat16)
        return result


@pytest.mark.parametrize("has", [True, False])
def test_the_speed_is_that_of_the_precision_of_runs(has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor without bfloat16 emulates it, several times slower than the float32 that runs then have."""
    network = Recording()
    monkeypatch.setattr(Convolutions, "build", lambda _: network)
    monkeypatch.setattr(cost, "has_bf16", lambda on_cuda: has)
    assert cost.passes_per_second(0.0) > 0 and network.half == [has]


def test_the_time_left_follows_the_pace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A third of the work in ten seconds leaves twenty, whoever did it."""
    now = 100.0
    monkeypatch.setattr(cost.time, "monotonic", lambda: now)
    order = WorkOrder((ENTRY,), (0,), tmp_path, (), True, "cpu")
    maker = order.maker()
    pieces = list(maker.pieces(ENTRY, (0,)))
    remaining = Remaining(maker, pieces)
    assert remaining.seconds() is None
    now = 110.0
    assert order.maker().make(pieces[1])
    remaining.end(remaining.costs[1])
    assert remaining.seconds() == pytest.approx(20.0)
    now = 130.0
    assert all(maker.make(piece) for piece in pieces)
    for cost_of_piece in (remaining.costs[0], remaining.costs[2]):
        remaining.end(cost_of_piece, mine=False)
    assert remaining.seconds() == 0.0


def test_the_time_left_counts_what_other_processes_do_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of three that has done a ninth of the work in ten seconds has seen a third of it done; a first hundredth,
    mostly the opening of images, tells nothing."""
    now = 100.0
    monkeypatch.setattr(cost.time, "monotonic", lambda: now)
    maker = WorkOrder((ENTRY,), (0,), tmp_path, (), True, "cpu").maker()
    remaining = Remaining(maker, list(maker.pieces(ENTRY, (0,))), jobs=3)
    total, now = sum(remaining.costs), 110.0
    remaining.end(total / 100)
    assert remaining.seconds() is not None, "three hundredths, of three processes"
    alone = Remaining(maker, list(maker.pieces(ENTRY, (0,))))
    alone.end(total / 100)
    assert alone.seconds() is None
    remaining.end(total / 9 - total / 100)
    assert remaining.seconds() == pytest.approx(20.0)
    remaining.end(total / 2, mine=False)
    assert remaining.seconds() == pytest.approx(10 * (1 - 11 / 18) / (11 / 18))


def test_processes_that_share_a_gpu_do_not_divide_the_time() -> None:
    work = Workload(pieces=2, runs=1, views=100, seconds=3_600.0)
    assert work.words(6).endswith("10 minutes with 6 processes")
    assert work.words(6, gpu=True).endswith("20 minutes with 6 processes on one GPU")
    assert work.words(1, gpu=True).endswith("60 minutes with 1 process on one GPU")


def test_critics_that_are_trained_take_minutes() -> None:
    """They took 763 seconds for six seeds, as their results say, and seconds were announced."""
    assert time_per_seed(TABLE_5) == "2 minutes"
