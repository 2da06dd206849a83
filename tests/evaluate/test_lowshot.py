"""Few images of each class: the samples, both choices of C against plain loops, the table and the figure."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from multilabel_images import Several, several
from references.average_precision import by_loop
from sklearn.model_selection import StratifiedKFold
from tiny import cpu_work, images, saved_run, tiny_run

from vantage import draws
from vantage.cli import main
from vantage.errors import UserError
from vantage.evaluate import LowShot, LowShotChosen, Outcome, evaluate, few_images, marked_features
from vantage.evaluate.protocols.svm import shared_fits as shared_fits_module
from vantage.evaluate.protocols.svm.deepest import deepest
from vantage.evaluate.protocols.svm.shots import Shots, ShotsCurve, read_shots
from vantage.evaluate.protocols.svm.solver import Solver, in_parallel
from vantage.frozen.encoder import random_encoder
from vantage.storage.cache import read_cached

FEW = (0.01, 1.0, 10.0)
SOLVER = Solver(2.0, 1e-4, 2000, 0)


@pytest.mark.parametrize("k", [1, 2, 8])
def test_the_exact_number_is_drawn_without_repeats(k: int) -> None:
    mark = several(400, 0).mark[:, 0]
    rows = few_images(mark, k, 19, seed=5)
    assert len(rows) == 20 * k == len(rows.unique())
    assert (mark[rows[:k]] == 1).all() and (mark[rows[k:]] == -1).all()
    assert torch.equal(rows, few_images(mark, k, 19, seed=5)) and not torch.equal(rows, few_images(mark, k, 19, seed=6))


def test_every_image_is_drawn_equally_often() -> None:
    mark = torch.cat([torch.ones(4), -torch.ones(8)]).to(torch.int8)
    count = torch.zeros(12)
    for seed in range(2000):
        count[few_images(mark, 1, 2, seed)] += 1
    assert (count[:4] / 2000 - 1 / 4).abs().max() < 0.04 and (count[4:] / 2000 - 2 / 8).abs().max() < 0.04


def test_the_published_protocol_is_the_default() -> None:
    for protocol in (LowShot(), LowShotChosen()):
        assert protocol.shots == (1, 2, 4, 8, 16, 32, 64, 96)
        assert (protocol.samples, protocol.negatives, protocol.costs) == (5, 19, "interclr")


def parts(tmp_path: Path) -> tuple[Any, Several, Several, Any, Any]:
    encoder, train, test = random_encoder(tiny_run()), several(150, 0), several(70, 1)
    at_depth, _ = deepest(encoder)
    return (
        encoder,
        train,
        test,
        marked_features(at_depth, train, cpu_work(tmp_path)),
        marked_features(at_depth, test, cpu_work(tmp_path)),
    )


def few_shots(training: Any, k: int, sample: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    rows = few_images(training.mark[:, number], k, 3, draws.mix(0, 0x10E5, k, sample, number))
    return training.vector[rows].numpy(), training.mark[rows, number].numpy()


def precision(machine: Any, testing: Any, number: int) -> float:
    mark = testing.mark[:, number].numpy()
    score = machine.score(testing.vector.numpy())[mark != 0]
    return 100 * by_loop(score.tolist(), (mark[mark != 0] == 1).tolist())


def test_the_oracle_equals_a_plain_loop(tmp_path: Path) -> None:
    encoder, train, test, training, testing = parts(tmp_path)
    outcome = LowShot(shots=(1, 4), samples=2, negatives=3, costs=FEW)(encoder, train, test, cpu_work(tmp_path))
    best = []
    for position, k in enumerate((1, 4)):
        table = np.zeros((2, 3, 3))
        for sample, number, cost in np.ndindex(2, 3, 3):
            machine = SOLVER.fit(*few_shots(training, k, sample, number), FEW[cost])
            table[sample, number, cost] = precision(machine, testing, number)
        by_cost = table.mean((0, 1))
        assert outcome.chosen["cost"][position] == FEW[int(by_cost.argmax())]  # pyright: ignore
        assert outcome.details["shots"][str(k)] == pytest.approx(table[:, :, by_cost.argmax()].mean(1))
        best.append(by_cost.max())
    assert outcome.measures == pytest.approx({"oracle-C mAP": np.mean(best), "k=1": best[0], "k=4": best[1]})
    assert next(iter(outcome.measures)) == "oracle-C mAP" and "TEST" in str(outcome.chosen["by"])


def test_the_honest_choice_equals_a_plain_loop(tmp_path: Path) -> None:
    encoder, train, test, training, testing = parts(tmp_path)
    protocol = LowShotChosen(shots=(1, 2, 6), samples=1, negatives=3, costs=FEW, cost_of_one=0.5)
    outcome = protocol(encoder, train, test, cpu_work(tmp_path))
    for k in (1, 2, 6):
        values = []
        for number in range(3):
            x, mark = few_shots(training, k, 0, number)
            score = [0.0] * 3
            for position, cost in enumerate(FEW if k > 1 else ()):
                for rest, own in StratifiedKFold(min(3, k)).split(x, mark):
                    fold = SOLVER.fit(x[rest], mark[rest], cost)
                    order = np.argsort(-fold.score(x[own]), kind="stable")
                    hit = mark[own][order] == 1
                    score[position] += float((np.cumsum(hit) / np.arange(1, len(hit) + 1))[hit].mean()) / min(3, k)
            cost = FEW[int(np.argmax(score))] if k > 1 else 0.5
            values.append(precision(SOLVER.fit(x, mark, cost), testing, number))
        assert outcome.details["shots"][str(k)] == pytest.approx([np.mean(values)]), k
    assert next(iter(outcome.measures)) == "mAP"


def test_only_the_oracle_chooses_by_test_labels(tmp_path: Path) -> None:
    encoder, train, test, _, _ = parts(tmp_path)
    opposite = Several(test.pixels, -test.mark)
    chance = {"shots": (4,), "samples": 2, "negatives": 3}
    honest = LowShotChosen(**chance, costs=FEW)(encoder, train, test, cpu_work(tmp_path))
    single = [
        LowShot(**chance, costs=(cost,))(encoder, train, test, cpu_work(tmp_path)).measures["oracle-C mAP"]
        for cost in FEW
    ]
    oracle = LowShot(**chance, costs=FEW)(encoder, train, test, cpu_work(tmp_path)).measures["oracle-C mAP"]
    assert oracle == pytest.approx(max(single)) and oracle >= honest.measures["mAP"] - 5
    assert LowShotChosen(**chance, costs=FEW)(encoder, train, opposite, cpu_work(tmp_path)).chosen == honest.chosen


def test_more_images_do_better(tmp_path: Path) -> None:
    encoder, train, test, _, _ = parts(tmp_path)
    outcome = LowShot((1, 16), samples=3, negatives=3, costs=(1.0,))(encoder, train, test, cpu_work(tmp_path))
    assert outcome.measures["k=16"] > outcome.measures["k=1"] + 5


def test_a_stopped_evaluation_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, train, test, _, _ = parts(tmp_path)
    protocol = LowShot((1, 2), samples=2, negatives=3, costs=FEW)
    whole = protocol(encoder, train, test, cpu_work(tmp_path / "whole"))

    def stopping(tasks: Any, processes: int) -> Iterator[Any]:
        for number, result in enumerate(in_parallel(tasks, processes)):
            if number == 7:
                raise KeyboardInterrupt
            yield result

    monkeypatch.setattr(shared_fits_module, "in_parallel", stopping)
    with pytest.raises(KeyboardInterrupt):
        protocol(encoder, train, test, cpu_work(tmp_path / "cut"))
    (file,) = (tmp_path / "cut" / "cache" / "lowshot").iterdir()
    assert sorted(read_cached(file)) == ["1/0", "1/1"]
    assert protocol(encoder, train, test, cpu_work(tmp_path / "cut")) == whole  # the six machines that are left
    assert protocol(encoder, train, test, cpu_work(tmp_path / "cut")) == whole  # none is left


def test_samples_that_cannot_be_drawn_are_refused(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), images(60, 0), images(30, 1)
    sentence = r"20 images show 0 and 40 do not: choose --shots 1 2, or fewer --negatives"
    with pytest.raises(UserError, match=sentence):
        LowShot(costs=FEW)(encoder, train, test, cpu_work(tmp_path))
    for negatives in (1, 2):  # as few as one would not help
        with pytest.raises(UserError, match="20 images show 0 and 40 do not: give more images$"):
            LowShot(shots=(30,), negatives=negatives, costs=FEW)(encoder, train, test, cpu_work(tmp_path))
    with pytest.raises(UserError, match="a sample needs 2 images with a class, but there are 1"):
        few_images(torch.tensor([1, -1, -1, 0], dtype=torch.int8), 2, 1, 0)
    for settings in ({"shots": ()}, {"shots": (1, 1)}, {"samples": 0}, {"negatives": 0}, {"costs": (-1.0,)}):
        with pytest.raises(UserError):
            LowShot(**settings)
    with pytest.raises(UserError, match="at least 2 folds"):
        LowShotChosen(folds=1)


# The table and the picture


def two_runs(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / "one", tmp_path / "two"]
    for seed, folder in enumerate(folders):
        saved_run(folder, tiny_run(), seed)
        protocol = LowShot((1, 4), samples=2, negatives=2, costs=(1.0,))
        evaluate(folder, protocol, images(60, 0), images(30, 1), baselines=True, work=cpu_work(tmp_path))
    return folders


@pytest.mark.slow
def test_curves_of_several_runs_share_a_table_and_a_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = two_runs(tmp_path)
    curves = read_shots(folders)
    assert [curve.name for curve in curves.curves] == ["moco_v2", "raw pixels", "random encoder", "moco_v2, two"]
    for ending in ("png", "svg"):
        picture = tmp_path / f"shots.{ending}"
        assert main(["shots", *map(str, folders), "--out", str(picture), "--quiet"]) == 0
        assert picture.stat().st_size > 4000
    output = capsys.readouterr().out.splitlines()
    assert output[0].split() == ["oracle-C", "mAP,", "%", "k=1", "k=4", "mean"] and len(output) == 10
    panel = curves.figure().axes[0]
    assert [text.get_text() for text in panel.get_legend().get_texts()] == [curve.name for curve in curves.curves]


def test_results_of_one_run_at_other_numbers_of_images_are_one_curve(tmp_path: Path) -> None:
    folders = two_runs(tmp_path)
    protocol = LowShot((2, 4), samples=2, negatives=2, costs=(1.0,))
    evaluate(folders[0], protocol, images(60, 0), images(30, 1), work=cpu_work(tmp_path))
    curves = {curve.name: curve for curve in read_shots(folders).curves}
    assert list(curves) == ["moco_v2", "raw pixels", "random encoder", "moco_v2, two"]
    assert sorted(curves["moco_v2"].samples) == [1, 2, 4] and sorted(curves["moco_v2, two"].samples) == [1, 4]


def test_the_table_shows_mean_and_deviation() -> None:
    table = Shots("mAP", (ShotsCurve("a", {1: (10.0, 14.0), 2: (20.0,)}), ShotsCurve("b", {1: (5.0,)}))).lines()
    assert table == [
        "mAP, %         k=1   k=2  mean",
        "a       12.0 ± 2.8  20.0  16.0",
        "b              5.0     –     –",
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("shots", "needs RUN: folders of runs"),
        ("shots RUN --out shots.bmp", "end the name with .png, .svg or .pdf"),
        ("shots RUN --out RUN/not.json/shots.png", "not.json is a file: choose another name"),
        ("shots RUN/missing.json", "cannot read"),
        ("shots RUN", "no low-shot results in"),
        ("shots RUN/not.json", "is not a result of vantage evaluate"),
    ],
)
def test_mistakes_with_shots_are_reported(
    words: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "not.json").write_text("[1]")
    words = words.replace("RUN", str(tmp_path)).replace("NOWHERE", str(tmp_path / "nowhere"))
    assert main(words.split()) == 2
    assert sentence in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"settings": {"samples": 3, "shots": [1]}}, "samples 5 and 3"),
        ({"test": "another"}, "different test images"),
        ({"train": "another", "settings": {"costs": "vissl"}}, 'costs null and "vissl", different train images'),
    ],
)
def test_other_settings_or_images_are_not_compared(changes: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    outcome = vars(Outcome({"mAP": 1.0}, 1, 1, {}, {"shots": {"1": [1.0]}}))
    record = {"protocol": "lowshot", "version": 1, "settings": {"samples": 5, "shots": [1]}, "train": "a", "test": "b"}
    files = [tmp_path / name for name in ("one.json", "more.json", "other.json")]
    more = record | {"settings": {"samples": 5, "shots": [1, 2]}}  # the same draws for k=1
    for file, each in zip(files, (record, more, record | changes), strict=True):
        file.write_text(json.dumps(each | {"outcomes": {file.stem: outcome}}))
    assert [curve.name for curve in read_shots(files[:2]).curves] == ["one", "more"]
    with pytest.raises(
        UserError, match=rf"one.json and .*other.json cannot be compared, since they differ: .*{sentence}.*; name"
    ):
        read_shots(files)


def test_different_protocols_are_not_compared(tmp_path: Path) -> None:
    outcome = Outcome({"mAP": 1.0}, 1, 1, {}, {"shots": {"1": [1.0]}})
    for name in ("lowshot", "lowshot-cv"):
        record = {"protocol": name, "version": 1, "outcomes": {name: vars(outcome)}}
        (tmp_path / f"{name}.json").write_text(json.dumps(record))
    with pytest.raises(UserError, match="results of different protocols cannot be compared: lowshot version 1, lowsh"):
        read_shots([tmp_path / "lowshot.json", tmp_path / "lowshot-cv.json"])


def test_names_that_matplotlib_hides_are_in_the_legend() -> None:
    curves = Shots("accuracy", tuple(ShotsCurve(name, {1: (10.0, 12.0)}) for name in ("_one", "", "two")))
    (legend,) = [panel.get_legend() for panel in curves.figure().axes]
    assert legend is not None and [text.get_text() for text in legend.get_texts()] == [" _one", " ", "two"]
