"""How far a run has annealed, and how accurate it was on the way."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import small_run, write_images

from vantage.data.sources.arrays import Arrays
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import KNN
from vantage.frozen.encoder import load, random_encoder
from vantage.frozen.networks import untrained_networks
from vantage.recipes import moco_v2
from vantage.schedules import Adaptive, FollowsAccuracy, FollowsLoss
from vantage.studies.lab.contracts import Subject
from vantage.studies.lab.entries.cnce_annealing import FIGURE_2B
from vantage.studies.lab.entry import Arm
from vantage.studies.lab.making.compositions import composition
from vantage.studies.lab.measures.annealing import AdaptedShare, NearestByEpoch
from vantage.studies.lab.sets import Split
from vantage.studies.lab.two_cores import base
from vantage.training.folder.kept_epochs import kept_epochs
from vantage.training.loop import train
from vantage.training.run import Monitoring, Run


def subject_of(tmp_path: Path, **changes: Any) -> Subject:
    images = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3)).astype(np.uint8)
    source = Arrays(images, np.arange(40) % 4, "noise")
    run = base(moco_v2(32)).run
    split = Split(source, source, source)
    work = Work("cpu", cache=tmp_path)
    subject = Subject(random_encoder(run), lambda: untrained_networks(run, 8, 0), split, 0, work, lambda *_: split)
    return replace(subject, **changes)


@pytest.mark.slow
def test_the_nearest_neighbor_by_epoch_is_that_of_each_kept_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run = small_run("moco_v2", write_images(tmp_path / "images.npz"), epochs=4)
    train(replace(run, monitoring=Monitoring(keep_every=1)), tmp_path / "run")
    by_hand = {1: 30.0, 2: 57.1, 3: 55.0, 4: 60.0}
    encoders = {load(folder): by_hand[epoch] for epoch, folder in kept_epochs(tmp_path / "run").items()}
    called = KNN.__call__

    def known(self: KNN, encoder: Any, *rest: Any) -> Any:
        outcome = called(self, encoder, *rest)
        (accuracy,) = (one for known, one in encoders.items() if known.checkpoint == encoder.checkpoint)
        assert self.k == 1
        return replace(outcome, measures={"top-1": accuracy, "top-5": 0.0})

    monkeypatch.setattr(KNN, "__call__", known)
    subject = subject_of(tmp_path, encoder=load(tmp_path / "run"), folder=tmp_path / "run")
    named = {f"1-NN, at {25 * epoch} %": accuracy for epoch, accuracy in by_hand.items()}
    assert NearestByEpoch()(subject) == named | {"1-NN, 95 % of its end after": 50.0}
    with pytest.raises(UserError, match="random encoder kept no epochs"):
        NearestByEpoch()(subject_of(tmp_path))


@pytest.mark.parametrize(("last", "after"), [(0.1, 75.0), (0.2, 100.0)])
def test_the_share_of_keys_is_read_from_the_metrics(tmp_path: Path, last: float, after: float) -> None:
    shares = [1.0] * 20 + [0.5] * 9 + [last] + [0.3] * 9 + [0.2]
    rows = [{"epoch": n + 1, "step": 10 * n + 10, "adapted.0": share} for n, share in enumerate(shares)]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    numbers = AdaptedShare()(subject_of(tmp_path, folder=tmp_path))
    assert numbers["keys kept, at 50 %"] == 100 and numbers["keys kept, at 55 %"] == 50
    assert numbers["keys kept, least"] == pytest.approx(100 * last)
    assert numbers["keys kept, end reached after"] == after and len(numbers) == 22
    with pytest.raises(UserError, match="no number that follows"):
        AdaptedShare()(subject_of(tmp_path))


def test_adaptive_policies_go_as_far_in_a_share_of_a_run_as_the_papers() -> None:
    """200 epochs of CIFAR-10 in batches of 256; .01 at every step, .05 at every validation."""
    runs = [cell.experiment.run for cell in FIGURE_2B.cells if isinstance(cell.experiment, Arm)]
    policies = [part for run in runs for part in (_keep(run),) if isinstance(part, Adaptive)]
    by_accuracy, by_loss = policies
    assert isinstance(by_accuracy, FollowsAccuracy) and isinstance(by_loss, FollowsLoss)
    steps = 40 * (4_500 // 64)
    assert by_accuracy.by * 40 == pytest.approx(0.05 * 200) and by_loss.by * steps == pytest.approx(390, abs=0.2)
    assert [run.monitoring.knn_every for run in runs] == [0, 0, 1, 0]
    assert composition(FIGURE_2B.cell("accuracy").experiment)["knn_every"] == 1


def _keep(run: Run) -> Any:
    return run.branches[0].negatives[0].keep  # pyright: ignore[reportAttributeAccessIssue]
