"""Linear SVMs: features, choice of C and average precision against plain computations, and errors."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from multilabel_images import Several, several
from references.average_precision import by_loop
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.svm import LinearSVC
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.data import Arrays, SourceSubset
from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.errors import UserError
from vantage.evaluate import COSTS, SVM, evaluate, marked_features
from vantage.evaluate.protocols.svm import shared_fits as module
from vantage.evaluate.protocols.svm import solver as linear_svm
from vantage.evaluate.protocols.svm.deepest import deepest
from vantage.evaluate.protocols.svm.solver import Solver, in_parallel, processes_for
from vantage.frozen.encoder import FrozenEncoder, random_encoder, raw_pixels
from vantage.storage.cache import read_cached
from vantage.views import EvaluationView, Straight
from vantage.views.colors.statistics import IMAGENET

FEW = (0.01, 1.0, 10.0)
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def resnet_run() -> FrozenEncoder:
    run = dataclasses.replace(tiny_run(), encoders=Shared(Encoder(ResNet(18, small=True), LinearHead(8))))
    return random_encoder(run)


def test_the_lists_of_c_are_those_of_the_papers() -> None:
    ours = COSTS["interclr"]
    assert len(ours) == 19 and set(ours) == {1.0, 10.0, 100.0} | {2.0**-n for n in range(4, 20)}
    assert COSTS["vissl"] == (0.01, 0.1, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 50.0, 100.0, 1000.0)
    assert all(list(costs) == sorted(costs) for costs in COSTS.values())


@pytest.mark.parametrize("size", [64, 32])
def test_the_deepest_map_is_pooled_to_two_by_two(size: int) -> None:
    encoder = dataclasses.replace(resnet_run(), view=EvaluationView(size, size, IMAGENET))
    before = encoder.digest()
    at_depth, words = deepest(encoder)
    assert (
        at_depth.width == 2048 and words == "deepest map at 2 x 2 places: 2048 numbers" and encoder.digest() == before
    )
    assert at_depth.view == Straight(encoder.view) and deepest(at_depth)[0].view == at_depth.view  # pyright: ignore
    pixels = torch.randn(2, 3, size, size)
    pooled = at_depth.backbone(pixels).view(2, 512, 4).mean(2)  # quarters of the map, averaged again, are the features
    torch.testing.assert_close(pooled, encoder.backbone(pixels))


def test_resnet_50_gives_8192_numbers_by_the_windows_of_the_release() -> None:
    backbone = ResNet(50).build().eval()
    encoder = dataclasses.replace(resnet_run(), backbone=backbone, view=EvaluationView(224, 256, IMAGENET))
    at_depth, _ = deepest(encoder)
    assert at_depth.width == 8192 and "AvgPool2d(kernel_size=6, stride=1" in repr(at_depth.backbone)


def test_a_backbone_without_maps_is_read_by_its_pooled_features() -> None:
    for encoder in (random_encoder(tiny_run()), raw_pixels(tiny_run())):
        at_depth, words = deepest(encoder)
        assert at_depth.backbone is encoder.backbone and words == f"pooled features: {encoder.width} numbers"


def test_features_show_the_whole_image_and_have_unit_length(tmp_path: Path) -> None:
    view = Straight(EvaluationView(8, 10, IMAGENET))
    wide = torch.arange(3 * 20 * 40, dtype=torch.uint8).view(3, 20, 40)
    from torchvision.transforms.v2 import functional

    expected = functional.resize(functional.resize(wide, [10, 20]), [8, 8])
    assert torch.equal(view.crop(wide), expected)
    vectors = marked_features(random_encoder(tiny_run()), images(12, 0), cpu_work(tmp_path))
    assert torch.linalg.vector_norm(vectors.vector, dim=1) == pytest.approx(torch.ones(12), abs=1e-3)


def plain(x: np.ndarray, mark: np.ndarray, costs: tuple[float, ...]) -> float:
    """C by three folds, step by step."""
    best, best_cost = -1.0, 0.0
    for cost in costs:
        scores = []
        for rest, own in StratifiedKFold(3).split(x, mark):
            machine = LinearSVC(C=cost, dual=True, class_weight={1: 2, -1: 1}, max_iter=2000, random_state=0)
            machine.fit(x[rest], mark[rest])
            scores.append(average_precision_score(mark[own], machine.decision_function(x[own])))
        if np.mean(scores) > best:
            best, best_cost = float(np.mean(scores)), cost
    return best_cost


def test_the_protocol_equals_a_plain_loop(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), several(150, 0), several(80, 1)
    outcome = SVM(costs=FEW)(encoder, train, test, cpu_work(tmp_path))
    at_depth, _ = deepest(encoder)
    x, y = marked_features(at_depth, train, cpu_work(tmp_path)), marked_features(at_depth, test, cpu_work(tmp_path))
    precision = []
    for c in range(3):
        mark = np.where(x.mark[:, c].numpy() == 1, 1, -1)
        cost = plain(x.vector.numpy(), mark, FEW)
        assert outcome.chosen["cost"][c] == cost  # pyright: ignore[reportArgumentType, reportIndexIssue]
        machine = LinearSVC(C=cost, dual=True, class_weight={1: 2, -1: 1}, max_iter=2000, random_state=0)
        score = machine.fit(x.vector.numpy(), mark).decision_function(y.vector.numpy())
        counts = y.mark[:, c].numpy() != 0
        precision.append(100 * by_loop(score[counts].tolist(), (y.mark[:, c].numpy()[counts] == 1).tolist()))
    precisions = outcome.details["average_precision"]
    assert list(precisions) == ["class 0", "class 1", "class 2"] and list(precisions.values()) == pytest.approx(
        precision
    )
    assert outcome.measures == {"mAP": pytest.approx(np.mean(precision))} and outcome.measures["mAP"] > 60
    assert (outcome.train_images, outcome.test_images) == (150, 80)


def test_folds_are_those_of_cross_val_score() -> None:
    chance = np.random.default_rng(0)
    x, mark = chance.normal(size=(60, 5)).astype(np.float32), np.where(chance.random(60) < 0.3, 1, -1).astype(np.int8)
    x[:, 0] += mark
    classifier = LinearSVC(C=0.5, dual=True, class_weight={1: 2, -1: 1}, max_iter=2000, random_state=0)
    theirs = cross_val_score(classifier, x, mark, cv=3, scoring="average_precision").mean()
    assert Solver(2.0, 1e-4, 2000, 0).cross_validate(x, mark, 0.5, 3) == (pytest.approx(theirs), 0)


def test_difficult_images_count_as_the_settings_say(tmp_path: Path) -> None:
    encoder, train, test = random_encoder(tiny_run()), several(150, 0), several(80, 1)
    outcomes = {
        (a, b): SVM(costs=(1.0,), difficult_train=a, difficult_test=b)(encoder, train, test, cpu_work(tmp_path))
        for a, b in ((-1, 0), (1, 0), (0, 0), (-1, 1), (-1, -1))
    }
    assert len({outcome.measures["mAP"] for outcome in outcomes.values()}) == 5
    as_negative = Several(train.pixels, torch.where(train.mark == 0, -1, train.mark).to(torch.int8))
    assert SVM(costs=(1.0,))(encoder, as_negative, test, cpu_work(tmp_path)).measures == outcomes[-1, 0].measures


def test_one_class_per_image_is_enough(tmp_path: Path) -> None:
    outcome = SVM(costs=FEW)(
        random_encoder(tiny_run()), images(60, 0, noise=30), images(30, 1, noise=30), cpu_work(tmp_path)
    )
    assert outcome.measures["mAP"] > 90 and len(outcome.details["average_precision"]) == 3


def test_a_stopped_choice_resumes_after_the_last_finished_class(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, train, test = random_encoder(tiny_run()), several(90, 0), several(60, 1)
    whole = SVM(costs=FEW)(encoder, train, test, cpu_work(tmp_path / "whole"))
    monkeypatch.setattr(module, "in_parallel", lambda tasks, n: _stop_after(in_parallel(tasks, n), 4))
    with pytest.raises(KeyboardInterrupt):
        SVM(costs=FEW)(encoder, train, test, cpu_work(tmp_path / "cut"))
    (file,) = (tmp_path / "cut" / "cache" / "svm").iterdir()
    assert len(read_cached(file)) == 1
    tasks_done: list[float] = []
    monkeypatch.setattr(module, "in_parallel", lambda tasks, n: in_parallel(_note_tasks(tasks, tasks_done), n))
    assert SVM(costs=FEW)(encoder, train, test, cpu_work(tmp_path / "cut")) == whole
    assert len(tasks_done) == 2 * len(FEW) + 3  # two classes to choose for, three to fit


def _stop_after(results, after):  # type: ignore[no-untyped-def]
    for number, result in enumerate(results):
        if number == after:
            raise KeyboardInterrupt
        yield result


def _note_tasks(tasks, tasks_done):  # type: ignore[no-untyped-def]
    for task in tasks:
        tasks_done.append(task)
        yield task


@pytest.mark.slow
def test_several_processes_give_the_results_of_one() -> None:
    chance = np.random.default_rng(0)
    x, mark = chance.normal(size=(80, 6)).astype(np.float32), np.where(chance.random(80) < 0.4, 1, -1).astype(np.int8)
    tasks = [(Solver(2.0, 1e-4, 50, 0).cross_validate, x, mark, cost, 3) for cost in (0.1, 1.0, 1000.0)]
    assert list(in_parallel(tasks, 1)) == list(in_parallel(tasks, 2))
    assert processes_for(480, 9) == 1 and processes_for(2**22, 100) >= 1
    assert any(failure for _, failure in in_parallel(tasks, 1))  # reported, without a warning


def test_free_memory_limits_the_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_svm.joblib, "cpu_count", lambda: 64)
    monkeypatch.setattr(linear_svm.os, "sysconf", lambda name: 4096 if "SIZE" in name else 2**20)  # 4 GiB free
    assert processes_for(5011 * 8192, 380) == 2 and processes_for(2**24, 3) == 3


def test_unsuitable_sets_are_refused(tmp_path: Path) -> None:
    encoder, work = random_encoder(tiny_run()), cpu_work(tmp_path)
    train, test = several(60, 0), several(40, 1)

    def assert_refused(sentence: str, train: Arrays = train, test: Arrays = test) -> None:
        with pytest.raises(UserError, match=sentence):
            SVM(costs=FEW)(encoder, train, test, work)

    mark = train.mark.clone()
    mark[:, 1] = -1
    assert_refused("but there are 0 with class 1: give more images", Several(train.pixels, mark))
    full = train.mark.clone()
    full[:, 2] = 1
    assert_refused("but there are 0 without class 2", Several(train.pixels, full))
    nowhere = test.mark.clone()
    nowhere[:, 0] = -1
    assert_refused("no test image shows class 0", test=Several(test.pixels, nowhere))
    blank = Several(train.pixels, torch.full((60, 3), -1, dtype=torch.int8))
    assert_refused("none of the 60 images is known to show a class", blank)
    assert_refused("different classes .only test images show", images(60, 0), images(40, 1, classes=4))
    one = images(30, 0, classes=1)
    assert_refused("0 without", one, SourceSubset(one, range(20)))  # pyright: ignore[reportArgumentType]


def test_invalid_settings_are_refused() -> None:
    for settings in ({"costs": ()}, {"costs": (0.0, 1.0)}, {"folds": 1}, {"difficult_train": 2}, {"tolerance": 0.0}):
        with pytest.raises(UserError):
            SVM(**settings)


def test_the_record_holds_the_list(tmp_path: Path) -> None:
    saved_run(tmp_path / "run", tiny_run())
    result = evaluate(tmp_path / "run", SVM(costs="vissl"), several(60, 0), several(40, 1), work=cpu_work(tmp_path))
    (file,) = (tmp_path / "run" / "evaluations").iterdir()
    record = json.loads(file.read_text())
    assert record["outcomes"]["moco_v2"]["chosen"]["costs"] == list(COSTS["vissl"])
    assert record["settings"]["difficult_train"] == -1 and "scikit-learn" in record["libraries"]
    assert result.lines()[0].startswith("moco_v2: mAP ")
