"""Sweeps that are refused before any training, or whose training fails."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_runs import IMAGES, SIZE
from small_studies import result_of, study_of

from vantage.data import open_source
from vantage.data.sources.arrays import Arrays
from vantage.errors import UserError
from vantage.negatives import Ring
from vantage.recipes import moco_v2
from vantage.schedules import Constant, Linear
from vantage.studies.analyse import HeldOutInformation
from vantage.studies.sweep import Fields, PatchDistance
from vantage.studies.sweep.field import Field
from vantage.training import loop
from vantage.training.run import Run


def test_misfits_are_reported_before_training(images_path: str, tmp_path: Path) -> None:
    folder = tmp_path / "sweep"
    with pytest.raises(UserError, match="the value 12 does not fit: two patches of 8 px at a distance of 12 px"):
        result_of(study_of(images_path, PatchDistance((2, 12), patch=8), "simclr"), folder)
    study = study_of(images_path, recipe="ring_moco")
    (branch,) = study.base.branches
    beyond = replace(branch, negatives=(Ring(Constant(0.5), Linear(0.1, 1.5, IMAGES // 8)),))  # at its last step alone
    with pytest.raises(UserError, match=r"does not fit: branch 0 cannot work: Ring.drop is 1.\d+ at step"):
        result_of(replace(study, base=replace(study.base, branches=(beyond,))), folder)
    with pytest.raises(UserError, match="the test images are the training images"):
        result_of(study_of(images_path), folder, open_source(images_path))
    unlabeled = Arrays(np.zeros((24, SIZE, SIZE, 3), np.uint8), None, "plain")
    with pytest.raises(UserError, match="needs labels"):
        result_of(study_of(images_path), folder, unlabeled)
    others = Arrays(np.zeros((24, SIZE, SIZE, 3), np.uint8), np.array(["x", "y"] * 12), "others")
    with pytest.raises(UserError, match="none of the 24 test images is of a class that the training images have"):
        result_of(study_of(images_path), folder, others)
    with pytest.raises(UserError, match="ask for fewer negatives, or hold out more images"):
        result_of(replace(study_of(images_path), information=HeldOutInformation(negatives=30)), folder)
    with pytest.raises(UserError, match="give at least one, and each only once"):
        replace(study_of(images_path), seeds=(1, 1))
    with pytest.raises(UserError, match=r"protocols of the sweep are \[\]: give at least one"):
        replace(study_of(images_path), protocols=())
    assert not folder.exists()


def test_two_values_that_are_one_run_are_refused() -> None:
    for sweep in (Field("temperature", ("0.1", "0.2", "0.10")), Fields(("temperature",), (("0.1",), ("0.10",)))):
        with pytest.raises(UserError, match="temperature: 0.1 and 0.10 are the same run: give each value only once"):
            sweep.points(moco_v2(32))


def test_images_of_one_class_are_refused_before_training(tmp_path: Path) -> None:
    path = tmp_path / "one.npz"
    pixels = np.random.default_rng(0).integers(0, 256, (IMAGES, SIZE, SIZE, 3), np.uint8)
    np.savez(path, images=pixels, labels=np.zeros(IMAGES, np.int64))
    with pytest.raises(UserError, match="are of one class, so there is nothing to distinguish"):
        result_of(study_of(str(path)), tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


def test_a_training_that_fails_names_its_value(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(*_: object, **__: object) -> None:
        raise UserError("the loss became nan at step 3")

    monkeypatch.setattr(loop, "train", diverge)
    with pytest.raises(UserError, match=r"0.2, seed 0: the loss became nan at step 3. Finished rows are kept"):
        result_of(study_of(images_path), tmp_path / "sweep")
    assert not (tmp_path / "sweep").exists()


def test_a_sweep_that_fails_before_its_first_row_does_not_block_another(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sweep"
    folder.mkdir()

    def diverge(run: Run, run_folder: Path, *_: object, **__: object) -> None:
        (run_folder / "checkpoint").mkdir(parents=True)
        raise UserError("the loss became nan in a later epoch")

    with monkeypatch.context() as patch:
        patch.setattr(loop, "train", diverge)
        with pytest.raises(UserError, match="in a later epoch"):
            result_of(study_of(images_path), folder)
    assert (folder / "runs").exists()  # a checkpoint is work that the same sweep may resume
    other = replace(study_of(images_path, PatchDistance((2,), patch=8), "simclr"), seeds=(0,), baselines=False)
    assert [row.label for row in result_of(other, folder).rows] == ["2"]
    with pytest.raises(UserError, match=r"holds another sweep: sweep is 'distance' there, 'crop' was asked"):
        result_of(study_of(images_path), folder)
