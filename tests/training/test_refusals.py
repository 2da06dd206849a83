"""What a run is refused for: at its start, or when it is resumed with other settings, images or files."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_runs import IMAGES, SIZE, small_run

from vantage import processes
from vantage.composition.assignments import assign
from vantage.composition.codec import allowing
from vantage.errors import UserError
from vantage.training.folder import same_run, settings
from vantage.training.folder.same_run import check_same_everywhere, check_same_images
from vantage.training.images import open_images
from vantage.training.loop import resume, train
from vantage.training.run import Data, Hardware, Monitoring, Run
from vantage.training.session import Session


def test_what_is_refused_at_the_start_leaves_no_run_behind(images_path: str, tmp_path: Path):
    with pytest.raises(UserError, match=f"there are {IMAGES} images"):
        train(replace(small_run("moco_v2", images_path), batch_size=1000), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_resumed_run_keeps_its_settings_and_its_images(images_path: str, tmp_path: Path):
    run = small_run("moco_v2", images_path, epochs=1)
    train(run, tmp_path / "run")
    with allowing("tiny"):
        with pytest.raises(UserError, match="epochs is 1 in the run, 5 was asked"):
            resume(tmp_path / "run", replace(run, epochs=5))
        Path(images_path).unlink()
        with pytest.raises(UserError):
            resume(tmp_path / "run")


def test_other_images_are_refused(images_path: str, tmp_path: Path):
    run = small_run("moco_v2", images_path, epochs=1)
    train(run, tmp_path / "run")
    import numpy as np

    other = str(tmp_path / "other.npz")
    np.savez(other, images=np.zeros((IMAGES, 16, 16, 3), np.uint8))
    with allowing("tiny"), pytest.raises(UserError, match="give the same images again"):
        resume(tmp_path / "run", replace(run, data=Data(other)))


def test_knn_of_images_without_labels_is_refused_before_the_first_step(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    without_labels, ones = str(tmp_path / "bare.npz"), str(tmp_path / "ones.npz")
    pixels = np.random.default_rng(0).integers(0, 256, (IMAGES, SIZE, SIZE, 3), np.uint8)
    np.savez(without_labels, images=pixels)
    np.savez(ones, images=pixels, labels=np.arange(IMAGES))
    monkeypatch.setattr(Session, "__init__", lambda *_: pytest.fail("it must be an error before anything is built"))
    for images_path, reason in (
        (without_labels, f"none of the {IMAGES} images has one"),
        (ones, "no class has two images"),
    ):
        run = small_run("moco_v2", images_path, epochs=2)
        with pytest.raises(UserError, match=f"monitoring.knn_every is 2, so .*{reason}.*, or set it to 0"):
            train(replace(run, monitoring=Monitoring(knn_every=2)), tmp_path / "run")
        assert not (tmp_path / "run").exists()
    with pytest.raises(pytest.fail.Exception):  # it is never asked for
        train(replace(run, monitoring=Monitoring(knn_every=3)), tmp_path / "run")


def test_edited_settings_are_refused_by_name(images_path: str, tmp_path: Path):
    train(small_run("moco_v2", images_path, epochs=1), tmp_path / "run")
    path = tmp_path / "run" / "settings.json"
    path.write_text(path.read_text().replace('"epochs": 1', '"epochs": 2'))
    with allowing("tiny"), pytest.raises(UserError, match="epochs is 1 in the run, 2 was asked"):
        resume(tmp_path / "run")


def test_a_damaged_record_is_named_and_a_lost_one_is_begun_anew(images_path: str, tmp_path: Path):
    train(small_run("moco_v2", images_path, epochs=1), tmp_path / "run")
    record = tmp_path / "run" / "provenance.json"
    (tmp_path / "run" / "metrics.jsonl").write_text('{"another": "program"}\n')
    for content in ("[", "{}", '[{"data": 1}]', "[3]"):
        record.write_text(content)
        with allowing("tiny"), pytest.raises(UserError, match="provenance.json is damaged"):
            resume(tmp_path / "run")
    record.unlink()
    with allowing("tiny"):
        assert resume(tmp_path / "run").finished
    assert json.loads(record.read_text())[0]["data"]["images"] == IMAGES


@pytest.mark.parametrize("change", [{"hold_out": 0.25}, {"max_images": 40}])
def test_resuming_on_other_shares_of_the_images_names_the_setting(
    change: dict[str, Any], images_path: str, tmp_path: Path
) -> None:
    run = small_run("moco_v2", images_path, epochs=1)
    train(run, tmp_path / "run")
    other = replace(run, data=replace(run.data, **change))
    ((name, value),) = change.items()
    with pytest.raises(UserError, match=rf"data\.{name} is 0(\.0)? in the run, {value} was asked for"):
        resume(tmp_path / "run", other)


def test_processes_with_other_images_or_settings_are_refused(images_path: str, monkeypatch) -> None:
    """Machines may have the images at other paths and other hardware, but not other images or another recipe."""
    numbers: list[int] = []

    def numbers_of(run: Run, data: dict[str, Any]) -> list[int]:
        numbers.clear()
        check_same_everywhere(run, data)
        return [*numbers]

    monkeypatch.setattr(same_run, "same_on_all", lambda number: numbers.append(number) is None)
    run, data = small_run("moco_v2", images_path, epochs=2), {"fingerprint": "a", "images": 60}
    images, settings = numbers_of(run, data)
    elsewhere = replace(run, data=Data("elsewhere"), hardware=Hardware(devices=2, nodes=2))
    assert numbers_of(elsewhere, data) == [images, settings] and images != settings
    assert numbers_of(run, {**data, "fingerprint": "b"})[0] != images
    assert numbers_of(replace(run, epochs=3), data) == [images, numbers[1]] and numbers[1] != settings
    monkeypatch.setattr(same_run, "same_on_all", lambda number: number == images)
    with pytest.raises(UserError, match="do not have the same settings"):
        check_same_everywhere(run, data)
    monkeypatch.setattr(same_run, "same_on_all", lambda number: False)
    with pytest.raises(UserError, match="do not have the same images"):
        check_same_everywhere(run, data)
    images_here = open_images(run.data)[0]
    check_same_images(images_here)  # alone
    monkeypatch.setattr(processes, "count", lambda: 2)
    with pytest.raises(UserError, match="the processes do not have the same images: give all machines the same"):
        check_same_images(images_here)


@pytest.mark.parametrize(("momentum", "where"), [("1.5", "1.5 at step 0"), ("Linear(0.9, 1.2, 3)", "1.2 at step 17")])
def test_a_momentum_encoder_that_would_run_away_is_refused(momentum: str, where: str, images_path: str, tmp_path: Path):
    """It left the network faster at every step, and the run ended as if nothing was wrong."""
    run = assign(small_run("moco_v2", images_path), [f"encoders.momentum={momentum}"])
    with pytest.raises(UserError, match=f"encoders.momentum is {where}: it is the weight .* give 0 to 1"):
        train(run, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    kept = assign(run, ["encoders.momentum=Cosine(0.9, 1.0, 7)", "epochs=1"])
    assert train(kept, tmp_path / "run").finished


def test_of_many_runs_the_first_are_named_and_the_others_counted(tmp_path: Path) -> None:
    for number in range(11):
        (tmp_path / f"run{number:02}").mkdir()
        (tmp_path / f"run{number:02}" / settings.FILE).touch()
    named = ", ".join(f"run{number:02}" for number in range(8))
    for folder, where in ((tmp_path / "zzz", f"runs in {tmp_path}"), (tmp_path, "runs in it")):
        with pytest.raises(UserError) as problem:
            settings.read(folder)
        assert f"({where}: {named} and 3 more)" in str(problem.value)
