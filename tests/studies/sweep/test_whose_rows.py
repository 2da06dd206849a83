"""Rows of a sweep are never those of other images, other numbers or other code."""

from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from small_runs import IMAGES, SIZE
from small_studies import TEST, result_of, study_of
from tiny import images

import vantage
from vantage.composition.fitting import parts_of
from vantage.composition.names import is_built_in
from vantage.data import Source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import KNN
from vantage.evaluate.result import Outcome
from vantage.frozen.encoder import FrozenEncoder
from vantage.studies.sweep import SweepPoint, run_study
from vantage.studies.sweep.rows import key_of
from vantage.training.run import Run

pytestmark = pytest.mark.usefixtures("allow_tiny")


def test_a_row_depends_on_what_changes_its_numbers(images_path: str) -> None:
    run = study_of(images_path).base
    same = [
        replace(run, data=replace(run.data, path="elsewhere", num_workers=3, resident_bytes=0)),
        replace(run, hardware=replace(run.hardware, devices=2, threads=2)),
    ]
    others = [
        replace(run, data=replace(run.data, shuffle_window=7)),
        replace(run, data=replace(run.data, resident_side=8)),
        replace(run, hardware=replace(run.hardware, precision="bf16-mixed")),
        replace(run, batch_size=4),
    ]
    assert {key_of(each) for each in same} == {key_of(run)}
    assert len({key_of(each) for each in (run, *others)}) == 5


def test_a_row_depends_on_the_code_of_own_parts(images_path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a part was edited, a sweep kept the rows of the part before."""
    run, before = study_of(images_path).base, vantage.moco_v2(32)
    keys = key_of(run), key_of(before)
    own: Any = next(type(part) for part in parts_of(run) if is_dataclass(part) and not is_built_in(type(part)))
    build = own.build
    monkeypatch.setattr(own, "build", lambda self, *rest: build(self, *rest))
    assert key_of(run) != keys[0] and key_of(before) == keys[1]


@pytest.mark.slow
def test_a_sweep_trains_on_the_images_that_it_is_given(images_path: str, tmp_path: Path) -> None:
    """It trained on those of `base.data`, and told the others' fingerprint."""
    study = replace(study_of(images_path), information=None, seeds=(0,), baselines=False, protocols=(KNN(k=3),))
    work, others = Work("cpu", num_workers=1, cache=tmp_path / "cache"), images(IMAGES, seed=7, size=SIZE)
    with pytest.raises(UserError, match=r"the training images given \(48\) are not those that base.data selects"):
        run_study(study, others, TEST, tmp_path / "sweep", work)
    assert not (tmp_path / "sweep").exists()
    own = replace(study, base=replace(study.base, data=replace(study.base.data, path="")))
    result = run_study(own, others, TEST, tmp_path / "own", work)
    for run in (tmp_path / "own" / "runs").iterdir():
        assert others.fingerprint() in (run / "provenance.json").read_text()
    again = run_study(own, others, TEST, tmp_path / "own", work)
    assert len(result.rows) == 2 and again.rows == result.rows


CALLS = 0


@dataclass(frozen=True)
class Counting:
    """An own protocol that counts its calls."""

    name: ClassVar[str] = "counting"
    version: ClassVar[int] = 1

    def __call__(self, encoder: FrozenEncoder, train: Source, test: Source, work: Work) -> Outcome:
        global CALLS
        CALLS += 1
        return Outcome({"top-1": 50.0}, len(train), len(test), chosen={})


def test_rows_of_code_that_counts_its_calls_are_found(images_path: str, tmp_path: Path) -> None:
    study = replace(study_of(images_path), information=None, seeds=(0,), protocols=(Counting(),))
    result = result_of(study, tmp_path / "sweep")
    assert len(result.rows) == 2 and len(result.baselines) == 2


@dataclass(frozen=True)
class Sizes:
    """An own sweep over how many images are trained on."""

    name: ClassVar[str] = "sizes"
    recipe: ClassVar[str] = "moco_v2"
    axis: ClassVar[str] = "images"

    def points(self, base: Run) -> tuple[SweepPoint, ...]:
        return tuple(
            SweepPoint(str(n), replace(base, data=replace(base.data, max_images=n)), float(n)) for n in (16, 0)
        )


def test_values_that_train_on_other_images_have_rows_of_their_own(images_path: str, tmp_path: Path) -> None:
    """They had the same key, and the second value got the row of the first."""
    study = replace(
        study_of(images_path, Sizes()), information=None, seeds=(0,), baselines=False, protocols=(KNN(k=3),)
    )
    result = result_of(study, tmp_path / "sweep")
    assert len({row.key for row in result.rows}) == 2 and len({row.loss for row in result.rows}) == 2
