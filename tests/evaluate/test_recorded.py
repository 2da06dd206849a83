"""A record holds everything that decides a result: settings, a protocol's fixed numbers, and how crops were drawn."""

import json
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest
from multilabel_images import several
from tiny import cpu_work, images, saved_run, tiny_run
from tiny_maps import mapped_run, two_run

from vantage.data.sources.source import Source
from vantage.evaluate import (
    SVM,
    FineTune,
    FineTuneChosen,
    LinearCached,
    LinearCMC,
    LinearMoCo,
    LinearMulti,
    LinearPyContrast,
    LinearRing,
    LowShot,
    LowShotChosen,
    Outcome,
    evaluate,
)
from vantage.evaluate.protocols.finetune import tuning
from vantage.evaluate.protocols.linear import logistic
from vantage.evaluate.protocols.linear.plan import LinearPlan
from vantage.evaluate.protocols.svm.solver import Solver
from vantage.frozen.encoder import random_encoder
from vantage.progress import QuietProgress

MEMORY, STREAMED = "batch by batch: images in memory", "image by image: streamed"
LINEAR = [
    (LinearMoCo((0.1, 1.0), 10, 20), {"rates_fall_before_epochs": [6, 8], "rates_fall_by": 0.1, "weight_decay": 0.0}),
    (LinearPyContrast((0.1,), 6, 20), {"rates_fall_before_epochs": [3, 4, 5], "rates_fall_by": 0.2, "momentum": 0.9}),
    (LinearCMC((0.1,), 6, 20), {"rates_fall_before_epochs": [3, 4, 5], "start": "Weights from N(0, .01²), biases 0."}),
    (LinearRing(epochs=2, batch_size=20), {"rates_fall_before_epochs": [], "momentum": 0.9, "weight_decay": 0.0}),
    (LinearMulti(epochs=10, batch_size=20),
     {"rates_fall_before_epochs": [3, 6, 9], "nesterov": True, "weight_decay": 1e-4}),
]  # fmt: skip


def judge(protocol: Any, folder: Path, resident: int = 2**20) -> Outcome:
    run = two_run() if isinstance(protocol, LinearCMC) else mapped_run()
    sides: tuple[Source, Source] = (images(40, 0), images(12, 1))
    if isinstance(protocol, SVM | LowShot | LowShotChosen):
        sides = (several(90, 0), several(40, 1))
    return protocol(random_encoder(run), *sides, replace(cpu_work(folder), resident_bytes=resident))


@pytest.mark.parametrize(("protocol", "fixed_facts"), LINEAR, ids=lambda value: getattr(value, "name", ""))
def test_a_linear_protocol_records_what_it_fixes(protocol: Any, fixed_facts: dict[str, Any], tmp_path: Path) -> None:
    record = judge(protocol, tmp_path).how
    assert fixed_facts.items() <= record.items() and record["held_out_to_choose"] == 0.1 and record["crops"] == MEMORY
    assert "RandomResizedCrop(size=32" in record["training_view"] and "Flip(probability=0.5)" in record["training_view"]
    assert ("BatchNorm1d" in record["before_the_classifier"]) == isinstance(protocol, LinearMulti)
    recorded = {"view", "milestones", "decay", "start", "descent", "normalize", "held_out"}
    assert {f.name for f in fields(LinearPlan)} == recorded | {
        "learning_rates",
        "epochs",
        "batch_size",
        "seed",
    }  # which are settings


@pytest.mark.parametrize("resident", [0, 2**20])
@pytest.mark.parametrize(
    "protocol",
    [LinearMoCo((0.1,), 1, 20), FineTune(1.0, epochs=1), FineTuneChosen(0.5, epochs=1, head_learning_rates=(0.1, 0.2))],
)
def test_it_records_how_crops_were_drawn(protocol: Any, resident: int, tmp_path: Path) -> None:
    assert judge(protocol, tmp_path, resident).how["crops"] == (MEMORY if resident else STREAMED)


@dataclass
class Starts(QuietProgress):
    """Records what was started."""

    starts: list[str] = field(default_factory=list)

    def start(self, name: str, total: int, completed: int = 0) -> None:
        self.starts.append(f"{name}: {total}")


@pytest.mark.parametrize("protocol", [LinearRing(epochs=1), FineTune(1.0, epochs=1)], ids=lambda one: one.name)
def test_decoding_and_measuring_report_progress(protocol: Any, tmp_path: Path) -> None:
    progress = Starts()
    work = replace(cpu_work(tmp_path), progress=progress)
    protocol(random_encoder(mapped_run()), images(40, 0), images(12, 1), work)
    assert "decoding images: 40" in progress.starts
    assert ("mean and deviation: 40" in progress.starts) == isinstance(protocol, LinearRing)


def test_results_of_resident_and_of_streamed_images_have_different_files(tmp_path: Path) -> None:
    saved_run(tmp_path / "run", tiny_run())
    for resident in (0, 2**20):
        work = replace(cpu_work(tmp_path), resident_bytes=resident)
        evaluate(tmp_path / "run", LinearMoCo((0.1,), 1, 20), images(40, 0), images(12, 1), work=work)
    records = [json.loads(file.read_text()) for file in (tmp_path / "run" / "evaluations").iterdir()]
    assert sorted(record["resident_bytes"] for record in records) == [0, 2**20]
    assert {record["outcomes"]["moco_v2"]["how"]["crops"] for record in records} == {MEMORY, STREAMED}


def test_fine_tuning_records_its_schedule(tmp_path: Path) -> None:
    record = judge(FineTune(1.0, epochs=2, batch_size=16), tmp_path).how
    assert record["weight_decay"] == 1e-4  # of the whole set; the setting is none
    assert (record["momentum"], record["rates_fall_after_shares"], record["rates_fall_by"]) == (0.9, [0.6, 0.8], 0.2)
    assert (record["head_start"], record["images_of_a_step"]) == (0.01, 14)
    few = FineTune(0.01, epochs=1)(random_encoder(tiny_run()), images(70, 0), images(12, 1), cpu_work(tmp_path))
    assert few.train_images == 3 and few.how["weight_decay"] == 5e-4
    again = judge(FineTune(1.0, epochs=2, batch_size=16), tmp_path)  # read from the cache
    assert again.how == record == json.loads(json.dumps(record))
    outcome = judge(FineTuneChosen(0.5, epochs=1, head_learning_rates=(0.1, 0.2)), tmp_path)
    assert outcome.how["held_out_to_choose"] == 0.2
    recorded = {"weight_decay", "milestones", "decay", "momentum", "head_start"}
    assert {f.name for f in fields(tuning.TuningSchedule)} == recorded | {
        "epochs",
        "batch_size",
        "learning_rates",
        "smallest_area",
        "seed",
    }


def test_logistic_regression_records_its_solver(tmp_path: Path) -> None:
    solver = judge(LinearCached((0.1,), iterations=8), tmp_path).how["solver"]
    assert solver == {**logistic._SOLVER, "max_eval": 10} and solver["history_size"] == 10


FEW: dict[str, Any] = {"shots": (1, 2), "samples": 1, "negatives": 2, "costs": (1.0,)}


@pytest.mark.parametrize("protocol", [SVM((1.0,)), LowShot(**FEW), LowShotChosen(**FEW)], ids=lambda one: one.name)
def test_svms_record_their_solver_and_how_images_are_seen(protocol: Any, tmp_path: Path) -> None:
    record = judge(protocol, tmp_path).how
    assert record["view"].startswith("Straight(") and record["added_to_the_length"] == 1e-5
    kind = {"penalty": "l2", "loss": "squared_hinge", "dual": True}
    assert record["solver"] == {**kind, "positive_weight": 2.0, "tolerance": 1e-4, "iterations": 2000, "seed": 0}
    other = replace(protocol, positive_weight=1.0, tolerance=0.1, iterations=5)
    assert other.__class__.version == 1 and Solver(1.0, 0.1, 5, 0).facts == judge(other, tmp_path).how["solver"]


def test_the_solver_of_few_images_is_a_setting(tmp_path: Path) -> None:
    assert judge(LowShot(**FEW), tmp_path).measures != judge(LowShot(**FEW, iterations=1), tmp_path).measures
