"""Epochs that a run keeps, each the folder of a run."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from small_runs import small_run, write_images

from vantage.errors import UserError, WriteError
from vantage.frozen.encoder import load
from vantage.frozen.networks import trained_networks
from vantage.training.folder import checkpoint, kept_epochs
from vantage.training.folder.kept_epochs import keep_epoch
from vantage.training.loop import resume, train
from vantage.training.run import Monitoring, Run
from vantage.training.start.warm_start import read_start


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of five epochs that keeps every other one."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    run = small_run("moco_v2", write_images(tmp_path / "images.npz"), epochs=5)
    return replace(run, monitoring=Monitoring(keep_every=2))


def weights(folder: Path) -> dict[str, torch.Tensor]:
    """The backbone that a run's folder holds."""
    return load(folder).backbone.state_dict()


@pytest.mark.slow
def test_each_kept_epoch_is_a_run_that_was_stopped_there(run: Run, tmp_path: Path) -> None:
    """Every other epoch and the last are kept, and what opens a run opens them; continuing one ends as the run did."""
    train(run, tmp_path / "run")
    kept = kept_epochs.kept_epochs(tmp_path / "run")
    assert list(kept) == [2, 4, 5]
    steps = {epoch: trained_networks(folder).step for epoch, folder in kept.items()}
    assert steps[4] == 2 * steps[2] and steps[5] == trained_networks(tmp_path / "run").step
    assert len((kept[2] / "metrics.jsonl").read_text().splitlines()) == 2
    assert read_start(kept[2]).images == read_start(tmp_path / "run").images
    early, late, end = weights(kept[2]), weights(kept[5]), weights(tmp_path / "run")
    assert any(not torch.equal(early[name], end[name]) for name in end)
    assert all(torch.equal(late[name], end[name]) for name in end)
    with pytest.raises(UserError, match="is an epoch that .*run keeps: start a new run from it .--init"):
        resume(kept[2])
    copy = shutil.copytree(kept[2], tmp_path / "copy")
    assert resume(copy).finished
    again, still = weights(copy), weights(kept[2])
    assert all(torch.equal(again[name], end[name]) for name in end)
    assert all(torch.equal(still[name], early[name]) for name in early)


def test_the_two_newest_checkpoints_stay_and_share_their_bytes(run: Run, tmp_path: Path) -> None:
    train(run, tmp_path / "run")
    newest = checkpoint.complete_checkpoints(tmp_path / "run")
    assert len(newest) == 2
    (kept,) = checkpoint.complete_checkpoints(tmp_path / "run" / "epochs" / "00005")
    assert os.path.samefile(kept / "tensors.safetensors", newest[-1] / "tensors.safetensors")


@pytest.mark.slow
def test_an_epoch_is_kept_even_if_the_process_was_killed_in_between(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the checkpoint of epoch 2 was written, before it was kept; and again while it was being kept."""

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(kept_epochs, "keep_epoch", killed)
        with pytest.raises(KeyboardInterrupt):
            train(run, tmp_path / "run")
    with monkeypatch.context() as patch:
        patch.setattr(kept_epochs, "_link", killed)
        with pytest.raises(KeyboardInterrupt):
            resume(tmp_path / "run")
    assert kept_epochs.kept_epochs(tmp_path / "run") == {}
    resume(tmp_path / "run")
    assert list(kept_epochs.kept_epochs(tmp_path / "run")) == [2, 4, 5]


def test_a_disk_without_second_names_gets_copies_and_a_full_one_an_error(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(replace(run, monitoring=Monitoring(), epochs=1), tmp_path / "run")

    def refused(*_: object) -> None:
        raise OSError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    folder = keep_epoch(tmp_path / "run", 1)
    assert torch.equal(*(next(iter(weights(path).values())) for path in (folder, tmp_path / "run")))
    assert keep_epoch(tmp_path / "run", 1) == folder, "kept as it is"

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for owner, name in ((kept_epochs, "_link"), (shutil, "copyfile")):  # at its checkpoint, and before
        monkeypatch.setattr(owner, name, full)
        with pytest.raises(WriteError, match="epoch 2 could not be written to .*: No space left.*resume"):
            keep_epoch(tmp_path / "run", 2)
    assert list(kept_epochs.kept_epochs(tmp_path / "run")) == [1]


def test_settings_without_it_are_written_as_before(run: Run, tmp_path: Path) -> None:
    train(replace(run, monitoring=Monitoring(), epochs=1), tmp_path / "run")
    assert "keep_every" not in json.loads((tmp_path / "run" / "settings.json").read_text())["run"]["monitoring"]
    assert not (tmp_path / "run" / "epochs").exists()
    with pytest.raises(UserError, match="keep_every"):
        Monitoring(keep_every=-1)


def test_a_link_in_place_of_the_folder_is_refused(run: Run, tmp_path: Path) -> None:
    train(replace(run, monitoring=Monitoring(), epochs=1), tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / "epochs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="link"):
        keep_epoch(tmp_path / "run", 1)
