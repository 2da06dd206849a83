"""Whole evaluations: the record, the baselines, the split, and a real data set."""

import json
from contextvars import Context
from dataclasses import replace
from pathlib import Path

import pytest
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.data import open_source
from vantage.data.sources.source import SourceSubset
from vantage.errors import UserError
from vantage.evaluate import KNN, LinearCached, LinearMoCo, NearestNeighbor, evaluate, task_of
from vantage.evaluate.judge import judge_once
from vantage.frozen.encoder import load, random_encoder, raw_pixels
from vantage.training.folder import settings


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    saved_run(tmp_path / "run", tiny_run())
    return tmp_path / "run"


def test_the_record_is_complete(run_folder: Path, tmp_path: Path) -> None:
    train, test = images(60, 0), images(30, 1)
    protocol = LinearMoCo(learning_rates=(0.5, 1.0), epochs=2, batch_size=16)
    result = evaluate(run_folder, protocol, train, test, baselines=True, work=cpu_work(tmp_path))
    (file,) = (run_folder / "evaluations").iterdir()
    record = json.loads(file.read_text())
    assert (record["protocol"], record["version"], record["checkpoint"]) == ("linear-moco", 1, "step-000000007")
    assert record["settings"] == {
        "learning_rates": [0.5, 1.0], "epochs": 2, "batch_size": 16, "smallest_area": 0.08, "seed": 0
    }  # fmt: skip
    assert list(record["outcomes"]) == ["moco_v2", "raw pixels", "random encoder"] == list(result.outcomes)
    assert record["outcomes"]["moco_v2"]["measures"]["top-1"] == result.outcomes["moco_v2"].accuracy.top1
    assert record["outcomes"]["moco_v2"]["chosen"]["learning_rate"] in (0.5, 1.0)
    assert record["encoder"] == load(run_folder).digest()
    assert (record["train"], record["test"]) == (train.fingerprint(), test.fingerprint())
    assert record["test_split"] == "a set of its own" and "torch" in record["libraries"]
    assert len(result.lines()) == 3 and "of 30 test images" in result.lines()[0]


def test_the_same_evaluation_replaces_its_file_and_another_does_not(run_folder: Path, tmp_path: Path) -> None:
    for protocol in (KNN(5), KNN(5), KNN(6), NearestNeighbor()):
        evaluate(run_folder, protocol, images(60, 0), images(30, 1), work=cpu_work(tmp_path))
    assert len(list((run_folder / "evaluations").iterdir())) == 3


def test_a_fifth_is_held_out_where_there_is_no_test_set(run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "elsewhere" / "result.json"
    result = evaluate(run_folder, KNN(5), images(60, 0), work=cpu_work(tmp_path), out=out)
    assert (result.outcomes["moco_v2"].train_images, result.outcomes["moco_v2"].test_images) == (48, 12)
    assert "a fifth of each class" in json.loads(out.read_text())["test_split"]
    assert not (run_folder / "evaluations").exists()


def test_training_images_are_refused_as_test_images(run_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="the test images are the training images"):
        evaluate(run_folder, KNN(5), images(60, 0), images(60, 0), work=cpu_work(tmp_path))


def test_results_do_not_depend_on_a_cache(run_folder: Path, tmp_path: Path) -> None:
    def judge_in(folder: str) -> object:
        work = cpu_work(tmp_path / folder)
        return evaluate(run_folder, LinearCached((1e-3, 1e-2)), images(60, 0), images(30, 1), work=work)

    assert judge_in("one") == judge_in("one") == judge_in("two")


@pytest.mark.slow
def test_real_digits_are_recognized(shared_data: Path, tmp_path: Path) -> None:
    """On MNIST a random encoder is far above chance by every protocol, and kNN on pixels is near published results."""
    digits = open_source(f"{shared_data / 'mnist.npz'}#train")
    train, test = SourceSubset(digits, range(1600)), SourceSubset(digits, range(1600, 2000))
    encoder = random_encoder(tiny_run())
    for protocol in (KNN(20, 0.1), NearestNeighbor(), LinearCached((1e-3, 1e-2))):
        accuracy = protocol(encoder, train, test, cpu_work(tmp_path, batch=256)).accuracy
        assert accuracy.top1 > 30
        assert (accuracy.top5 is None) == isinstance(protocol, NearestNeighbor) and (accuracy.top5 or 100) > 75
    assert NearestNeighbor()(raw_pixels(tiny_run()), train, test, cpu_work(tmp_path)).accuracy.top1 > 85


def test_a_run_with_own_parts_needs_permission(run_folder: Path) -> None:
    assert load(run_folder).run == settings.read(run_folder)
    with pytest.raises(UserError):
        Context().run(load, run_folder)  # parts of the user's own must be allowed by name


def test_an_encoder_without_a_folder_is_evaluated_alike_and_nothing_is_written(
    run_folder: Path, tmp_path: Path
) -> None:
    train, test, work = images(60, 0), images(30, 1), cpu_work(tmp_path)
    alone = evaluate(load(run_folder), KNN(k=3), train, test, baselines=True, work=work)
    assert not (run_folder / "evaluations").exists()
    assert alone == evaluate(run_folder, KNN(k=3), train, test, baselines=True, work=work)
    out = tmp_path / "out.json"
    assert evaluate(load(run_folder), KNN(k=3), train, test, work=work, out=out).protocol == "knn" and out.exists()


def test_a_result_recorded_under_earlier_names_of_settings_is_read(run_folder: Path, tmp_path: Path) -> None:
    """Settings and choices called rate, rates and batch, and a view called Evaluation, are read; another learning rate
    is evaluated."""
    train, test, work = images(60, 0), images(30, 1), cpu_work(tmp_path)
    protocol = LinearMoCo(learning_rates=(0.5,), epochs=1, batch_size=16)
    result = evaluate(run_folder, protocol, train, test, work=work)
    (file,) = (run_folder / "evaluations").iterdir()
    record = json.loads(file.read_text())
    settings = record["settings"]
    settings["rates"], settings["batch"] = settings.pop("learning_rates"), settings.pop("batch_size")
    chosen = record["outcomes"]["moco_v2"]["chosen"]
    chosen["rate"] = chosen.pop("learning_rate")
    record["view"] = record["view"].replace("EvaluationView(", "Evaluation(")
    file.write_text(json.dumps(record))
    is_recorded: list[bool] = []
    for rate in (0.5, 1.0):
        task = task_of(replace(protocol, learning_rates=(rate,)), train, test)
        outcome = judge_once(task, load(run_folder), work, run_folder, report=is_recorded.append)
        assert (outcome == result.outcomes["moco_v2"]) == (rate == 0.5)
    assert is_recorded == [True, False]
