"""Sweeps as they are made: what is kept, skipped and gone on with; tables and pictures hold the rows."""

import csv
import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from small_runs import IMAGES, SIZE
from small_studies import TEST, result_of, study_of
from tiny import images

from vantage.composition.codec import allowing
from vantage.data import open_source
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import KNN
from vantage.facts.results import RANDOM_ENCODER, RAW_PIXELS
from vantage.frozen.encoder import random_encoder, raw_pixels
from vantage.frozen.networks import trained_networks
from vantage.progress import QuietProgress
from vantage.studies.analyse import HeldOutInformation
from vantage.studies.sweep import (
    ColorSpaces,
    CropBound,
    PatchDistance,
    SweepResult,
    parse_fields,
    run_study,
    sweep_figure,
    write_sweep,
)
from vantage.studies.sweep.nested_progress import NestedProgress
from vantage.studies.sweep.rows import SweepRow, key_of
from vantage.training import loop

pytestmark = pytest.mark.usefixtures("allow_tiny")

STEPS = IMAGES // 8  # of an epoch


@pytest.fixture(scope="module")
def whole(images_path: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[SweepResult, Path]:
    """A finished study, and its folder."""
    folder = tmp_path_factory.mktemp("whole") / "sweep"
    with allowing("tiny"):
        return result_of(study_of(images_path), folder), folder


@pytest.mark.slow
def test_every_value_and_seed_has_a_row(whole: tuple[SweepResult, Path]) -> None:
    result, folder = whole
    assert result.finished
    assert [(row.label, row.number, row.seed) for row in result.rows] == [
        ("0.2", 0.2, 0), ("0.2", 0.2, 1), ("0.6", 0.6, 0), ("0.6", 0.6, 1),
    ]  # fmt: skip
    assert len({row.key for row in result.rows}) == 4
    for row in result.rows:
        assert list(row.accuracy) == ["linear-cached", "knn"]
        assert row.i_nce is not None and row.bound is not None
        assert row.i_nce < row.bound == pytest.approx(np.log(6))
        assert row.encoder == "moco_v2" and row.loss is not None and row.seconds is not None
    assert len({row.i_nce for row in result.rows}) == 4
    record = json.loads((folder / "sweep.json").read_text())
    assert record["sweep"] == "crop" and record["settings"] == {}
    assert record["test"] == {"images": 24, "fingerprint": TEST.fingerprint()}
    rows = {row["key"]: row for row in record["rows"]}
    for row in (*result.rows, *result.baselines):
        assert rows[row.key]["accuracy"] == dict(row.accuracy) and rows[row.key]["i_nce"] == row.i_nce


def test_a_row_is_what_its_run_measures(whole: tuple[SweepResult, Path], images_path: str) -> None:
    result, folder = whole
    for row in result.rows:
        (run,) = (folder / "runs").glob(f"{row.label}-seed-{row.seed}-*")
        one = trained_networks(run)
        assert one.run.seed == row.seed and one.run.views.views[0].crop.scale[0] == row.number  # pyright: ignore
        (shared,) = HeldOutInformation(negatives=5, draws=2).of(one, TEST, Work("cpu", num_workers=1))
        assert (row.i_nce, row.i_nce_deviation) == pytest.approx((shared.nats, shared.deviation), abs=1e-6)
        assert row.branches[0]["pairs"] == "view 0 with view 1 of the same draw"


def test_baselines_are_judged_as_the_runs_are(whole: tuple[SweepResult, Path], images_path: str) -> None:
    result, folder = whole
    assert [(row.encoder, row.seed) for row in result.baselines] == [
        (RAW_PIXELS, 0),
        (RANDOM_ENCODER, 0),
        (RANDOM_ENCODER, 1),
    ]
    run, train = study_of(images_path).base, open_source(images_path)
    work = Work("cpu", num_workers=1, cache=folder.parent / "other")
    for encoder, row in zip(
        (raw_pixels(run), random_encoder(run, 0), random_encoder(run, 1)), result.baselines, strict=True
    ):
        assert row.accuracy["knn"] == KNN(k=3)(encoder, train, TEST, work).accuracy.top1
        assert row.i_nce is None


def test_tables_hold_the_means_of_the_rows(whole: tuple[SweepResult, Path]) -> None:
    result, _ = whole
    first = result.table()[0]
    mine = [row for row in result.rows if row.label == "0.2"]
    assert first["I_NCE (nats)"] == pytest.approx(fmean(row.i_nce or 0.0 for row in mine))
    assert first["I_NCE (nats) ±"] == pytest.approx(stdev(row.i_nce or 0.0 for row in mine))
    assert first["knn (%)"] == pytest.approx(fmean(row.accuracy["knn"] for row in mine))
    assert [row["value"] for row in result.table()] == ["0.2", "0.6", RAW_PIXELS, RANDOM_ENCODER]
    cell = f"{first['I_NCE (nats)']:.3f} ± {first['I_NCE (nats) ±']:.3f}"
    assert f"| 0.2 | 2 | {cell} |" in " ".join(result.markdown().split())
    assert any(cell in line for line in result.lines())
    assert "K = 5 negatives is at most log(K + 1) = 1.79 nats" in result.markdown()
    rows = list(csv.DictReader(result.csv().splitlines()))
    assert [float(row["i_nce"]) for row in rows[:4]] == [row.i_nce for row in result.rows]
    assert [float(row["knn (%)"]) for row in rows] == [row.accuracy["knn"] for row in (*result.rows, *result.baselines)]


def test_pictures_show_the_rows(whole: tuple[SweepResult, Path], tmp_path: Path) -> None:
    result, _ = whole
    axes = sweep_figure(result).axes
    shares = "what the views share (K = 5: at most 1.79 nats)"
    assert [panel.get_title() for panel in axes] == ["accuracy", shares, "one against the other"]
    labels = [result.accuracy(label, "linear-cached").mean for label in ("0.2", "0.6")]
    shared = [result.i_nce(label).mean for label in ("0.2", "0.6")]
    assert [list(line.get_ydata()) for line in axes[0].containers[0].lines[:1]] == [labels]  # pyright: ignore
    assert [list(line.get_ydata()) for line in axes[1].containers[0].lines[:1]] == [shared]  # pyright: ignore
    points = [(bars.lines[0].get_xdata()[0], bars.lines[0].get_ydata()[0]) for bars in axes[2].containers]  # pyright: ignore
    assert points == list(zip(shared, labels, strict=True))
    assert {text.get_text(): text.xy for text in axes[2].texts} == dict(zip(("0.2", "0.6"), points, strict=True))  # pyright: ignore
    small = [point for line in axes[2].lines for point in np.asarray(line.get_xydata()).tolist()]
    assert all([row.i_nce, row.accuracy["linear-cached"]] in small for row in result.rows)
    files = write_sweep(result, tmp_path)
    assert [path.name for path in files] == ["crop.md", "crop.csv", "crop.png", "crop.svg"]
    assert (tmp_path / "crop.png").read_bytes()[:4] == b"\x89PNG"
    before = (tmp_path / "crop.svg").read_bytes()
    assert b"<svg" in before and b"<dc:date>" not in before


def test_finished_rows_are_skipped(
    whole: tuple[SweepResult, Path], images_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, folder = whole
    for name in ("train", "resume"):
        monkeypatch.setattr(loop, name, lambda *_, **__: pytest.fail("it was trained again"))
    again = result_of(study_of(images_path), folder)
    assert (again.rows, again.baselines) == (result.rows, result.baselines)
    fewer = result_of(replace(study_of(images_path, CropBound((0.6,))), seeds=(1,)), folder)
    assert fewer.rows == (result.rows[3],)
    assert [(row.encoder, row.seed, row.label) for row in fewer.baselines] == [
        (RAW_PIXELS, 0, "0.6"),
        (RANDOM_ENCODER, 1, "0.6"),
    ]


def test_values_and_seeds_can_be_added(
    whole: tuple[SweepResult, Path], images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result, folder = whole
    shutil.copytree(folder, tmp_path / "sweep")
    seeds, train = [], loop.train
    monkeypatch.setattr(loop, "train", lambda run, *rest, **also: seeds.append(run.seed) or train(run, *rest, **also))
    wider = replace(study_of(images_path, CropBound((0.5, 0.2))), seeds=(1,), baselines=False, discard=True)
    more = result_of(wider, tmp_path / "sweep")
    assert seeds == [1]
    assert [(row.label, row.seed) for row in more.rows] == [("0.5", 1), ("0.2", 1)]
    assert more.rows[1] == result.rows[1]
    assert more.baselines == ()
    record = json.loads((tmp_path / "sweep" / "sweep.json").read_text())
    assert len(record["rows"]) == 4 + 3 + 1
    assert len(list((tmp_path / "sweep" / "runs").iterdir())) == 4  # the new one was discarded


class Signalling(QuietProgress):
    """Asks the process to stop when this many steps are done."""

    def __init__(self, at: int) -> None:
        self.at, self.lines = at, []

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        """Once."""
        self.lines.append(completed)
        if completed == self.at:
            self.at = -1
            os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.slow
def test_an_interrupted_training_resumes(images_path: str, whole: tuple[SweepResult, Path], tmp_path: Path) -> None:
    study = replace(study_of(images_path), seeds=(0,), baselines=False)
    work = Work("cpu", num_workers=1, cache=tmp_path / "cache")
    train, progress = open_source(images_path), Signalling(at=STEPS + 3)
    first = run_study(study, train, TEST, tmp_path / "sweep", work, Signalling(at=2))
    assert (first.finished, first.rows) == (False, ())
    interrupted_result = run_study(study, train, TEST, tmp_path / "sweep", work, progress)
    assert not interrupted_result.finished
    assert [(row.label, row.seed) for row in interrupted_result.rows] == [("0.2", 0)]
    (half,) = (tmp_path / "sweep" / "runs").glob("0.6-seed-0-*")
    assert 0 < trained_networks(half).step < STEPS
    last = Signalling(at=-1)
    result = run_study(study, train, TEST, tmp_path / "sweep", work, last)
    assert result.finished
    assert last.lines[0] > STEPS and last.lines == sorted(last.lines) and last.lines[-1] == 2 * STEPS
    for row, same in zip(result.rows, whole[0].rows[::2], strict=True):
        assert (row.key, row.i_nce, row.accuracy) == (same.key, same.i_nce, same.accuracy)


def test_spaces_have_baselines_of_their_own(images_path: str, tmp_path: Path) -> None:
    study = study_of(images_path, ColorSpaces(("Lab", "RGB")), "cmc_softmax")
    result = result_of(replace(study, seeds=(0,), protocols=(KNN(k=3),)), tmp_path / "sweep")
    assert [(row.encoder, row.label) for row in result.baselines] == [
        (RAW_PIXELS, "Lab"), (RANDOM_ENCODER, "Lab"), (RAW_PIXELS, "RGB"), (RANDOM_ENCODER, "RGB"),
    ]  # fmt: skip
    assert not result.is_shared(RAW_PIXELS) and not result.is_shared(RANDOM_ENCODER)
    assert [row["value"] for row in result.table()][2:] == [
        f"{n}, as {v}" for n in (RAW_PIXELS, RANDOM_ENCODER) for v in ("Lab", "RGB")
    ]
    assert len(result.rows[0].branches) == 2
    sweep_figure(result)


def test_backbones_have_random_encoders_of_their_own(images_path: str, tmp_path: Path) -> None:
    study = study_of(images_path, parse_fields("channels=4,12", "temperature=0.1,0.2", grid=True))
    study = replace(study, seeds=(0,), information=None, protocols=(KNN(k=3),))
    result = result_of(study, tmp_path / "sweep")
    assert [(row.encoder, row.label) for row in result.baselines] == [
        (RAW_PIXELS, "4, 0.1"), (RANDOM_ENCODER, "4, 0.1"), (RANDOM_ENCODER, "12, 0.1"),
    ]  # fmt: skip
    names = [RAW_PIXELS, f"{RANDOM_ENCODER}, as 4, 0.1", f"{RANDOM_ENCODER}, as 12, 0.1"]
    assert [row["value"] for row in result.table()][4:] == names
    run, work = study.sweep.points(study.base)[2].run, Work("cpu", num_workers=1, cache=tmp_path / "cache")
    expected = KNN(k=3)(random_encoder(run, 0), open_source(images_path), TEST, work).measures["top-1"]
    assert result.baselines[2].accuracy == {"knn": expected}
    sweep_figure(result)


def test_a_folder_of_another_sweep_is_refused(
    whole: tuple[SweepResult, Path], images_path: str, tmp_path: Path
) -> None:
    _, folder = whole
    with pytest.raises(UserError, match=r"holds another sweep: sweep is 'crop' there, 'distance' was asked"):
        result_of(study_of(images_path, PatchDistance((2,), patch=8)), folder)
    with pytest.raises(UserError, match=r"base.epochs is 1 there, 2 was asked"):
        result_of(study_of(images_path, epochs=2), folder)
    with pytest.raises(UserError, match=r"information.negatives is 5 there, 6 was asked"):
        result_of(replace(study_of(images_path), information=HeldOutInformation(negatives=6, draws=2)), folder)
    with pytest.raises(UserError, match=r"test.fingerprint is .*; name another folder"):
        result_of(study_of(images_path), folder, images(24, seed=4, size=SIZE))
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").touch()
    with pytest.raises(UserError, match="is not empty and holds no sweep"):
        result_of(study_of(images_path), tmp_path / "full")
    (tmp_path / "torn").mkdir()
    (tmp_path / "torn" / "sweep.json").write_text('{"schema": 1, "rows": [{}')
    with pytest.raises(UserError, match=r"sweep.json is damaged"):
        result_of(study_of(images_path), tmp_path / "torn")


def test_keys_follow_settings_and_images_but_not_the_machine(images_path: str) -> None:
    run = study_of(images_path).base
    assert key_of(run) == key_of(replace(run, data=replace(run.data, path="elsewhere", num_workers=7)))
    assert key_of(run) == key_of(replace(run, monitoring=replace(run.monitoring, log_every=9)))
    assert key_of(run) != key_of(replace(run, seed=1))
    assert key_of(run) != key_of(replace(run, batch_size=16))
    assert key_of(run, "a") != key_of(run, "b")


def test_a_part_moves_the_bar_of_the_whole() -> None:
    whole = Signalling(at=-1)
    part = NestedProgress(whole, before=30, name="0.2, seed 0", task="moco_v2")
    part.start("moco_v2", 10, completed=4)
    part.advance(7, "loss")
    part.stop()
    assert whole.lines == [34, 37]
    assert isinstance(SweepRow("k", RAW_PIXELS, "0.2", 0.2, 0, {}), SweepRow)


def test_the_bar_counts_the_steps_of_every_value_and_no_images(
    images_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs of different length, which decode more images than there are steps."""
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))  # nothing is decoded yet
    study = replace(study_of(images_path, parse_fields("epochs=1,4")), seeds=(0,), information=None, baselines=False)
    bar, work = Noting(), Work("cpu", num_workers=1, cache=tmp_path / "cache")
    assert run_study(study, open_source(images_path), TEST, tmp_path / "sweep", work, bar).finished
    assert bar.total == 5 * STEPS and bar.lines == sorted(bar.lines) and bar.lines[-1] == bar.total
    assert any(f"decoding images: {IMAGES} of {IMAGES}" in note for note in bar.notes)


class Noting(Signalling):
    """Keeps the total and the notes."""

    def __init__(self) -> None:
        super().__init__(at=-1)
        self.total, self.notes = 0, []

    def start(self, name: str, total: int, completed: int = 0) -> None:
        self.total = total

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        super().advance(completed)
        self.notes.append(note)
