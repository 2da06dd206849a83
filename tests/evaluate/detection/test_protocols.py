"""Protocols of detection from a run to its record, on the command line too, and errors."""

import dataclasses
import functools
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from annotated import coco_content, small_coco, write_coco, write_voc
from tiny import cpu_work, images, saved_run, tiny_run

from vantage.cli import main
from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.errors import UserError
from vantage.evaluate import EvaluationProtocol, evaluate
from vantage.evaluate.protocols.detection import (
    Cascade,
    CascadeInstances,
    Detection,
    DetectionC4,
    DetectorTraining,
    FourthStage,
    InstancesC4,
    InstanceSegmentation,
    JoinedImages,
    KeypointDetection,
    OfClasses,
    Pyramid,
    SelectedImages,
    Sizes,
    open_annotated,
)
from vantage.evaluate.result import Outcome, Result, find_outcome
from vantage.frozen.encoder import FrozenEncoder, random_encoder
from vantage.learner import Learner
from vantage.progress import QuietProgress
from vantage.training.folder import checkpoint, settings

SIZES = Sizes((32,), 32, 48, (8, 16, 24, 32, 48), regions=4, proposals=8)
RUN = dataclasses.replace(tiny_run(), encoders=Shared(Encoder(ResNet(18), LinearHead(8))))


def plain_run(folder: Path) -> None:
    """Settings and a checkpoint with initial weights; those of `saved_run` are too far off for a detector to learn."""
    learner = Learner(RUN.encoders, RUN.branches, images=64, seed=0)
    settings.write(RUN, folder)
    checkpoint.save(folder, 7, {f"learner.{name}": value for name, value in learner.state_dict().items()}, {})


def random_network() -> FrozenEncoder:
    return random_encoder(RUN)


@pytest.mark.slow
def test_the_command_line_evaluates_and_records_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    plain_run(tmp_path / "run")
    train, test = small_coco(tmp_path / "a"), small_coco(tmp_path / "b", "val", 3, 1)
    words = ["evaluate", "detection", str(tmp_path / "run"), "--data", str(train), "--test", str(test), "--baselines"]
    words += ["--steps", "2", "--batch-size", "2", "--device", "cpu", "--precise-batches", "1"]
    words += ["--set", "sizes.short_sides=32", "--set", "sizes.test-side=32", "--set", "sizes.long-side=48"]
    words += ["--set", "sizes.regions=4", "--set", "sizes.anchors=8,16,24,32,48", "--set", "sizes.proposals=8"]
    assert main([*words, "--set", "network_on.frozen_stages=5", "--set", "new_norm=False"]) == 0
    output = capsys.readouterr()
    assert "moco_v2: AP 0.00 %" in output.out and "random encoder: AP 0.00 %" in output.out
    (file,) = (tmp_path / "run" / "evaluations").glob("detection-v2-*.json")
    record = json.loads(file.read_text())
    assert record["settings"]["network_on"] == {"frozen_stages": 5, "new_norm": False, "normed_heads": False}
    assert record["version"] == 2
    assert record["settings"]["sizes"]["anchors"] == [8, 16, 24, 32, 48] and "pycocotools" in record["libraries"]
    outcome = record["outcomes"]["moco_v2"]
    assert list(outcome["measures"]) == ["AP", "AP50", "AP75"] and outcome["details"]["training images left out"] == 1
    assert (outcome["train_images"], outcome["test_images"], len(outcome["details"]["losses"])) == (5, 3, 2)
    details = outcome["details"]
    assert (details["shorter sides in training"], details["rising steps"], details["milestones"]) == ([32], 0, [1, 2])
    assert not list((tmp_path / "cache").rglob("detectors/*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "nothing.json"], "nothing.json does not exist"),
        (["--data", "{folder}"], "Name one of its files: annotations/instances_train.json"),
        (["--data", "{file}", "--test", "{file}"], "the test images are the training images"),
        (["--data", "{file}", "--schedule", "3x"], "3x"),
        (["--data", "{file}", "--batch-size", "0"], "batch_size is 0; give at least 1"),
        (["--data", "{file}", "--set", "frozen_stages=6"], "frozen_stages is 6"),
        (["--data", "{file}", "--stepps", "6"], "--steps"),
        ([], "needs --data"),
    ],
)
def test_mistakes_on_the_command_line_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    saved_run(tmp_path / "run", RUN)
    file = small_coco(tmp_path / "data")
    words = [word.format(file=file, folder=tmp_path / "data") for word in words]
    assert main(["evaluate", "detection", str(tmp_path / "run"), *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_unsuitable_images_and_settings_are_refused(tmp_path: Path) -> None:
    source, work = open_annotated(small_coco(tmp_path)), cpu_work(tmp_path)
    protocol = Detection(steps=1, batch_size=1, sizes=SIZES)
    assert isinstance(protocol, EvaluationProtocol)
    with pytest.raises(UserError, match="needs images with boxes"):
        protocol(random_network(), images(4, 0), images(4, 1), work)
    with pytest.raises(UserError, match=r"1 class that the training images do not have \(box\)"):
        protocol(random_network(), OfClasses(source, ["person"], leave_out=True), source, work)
    write_voc(tmp_path / "voc", {"1": [("dog", (1, 1, 9, 9), 0)], "2": []}, "train")
    voc = open_annotated(f"{tmp_path}/voc#train")
    with pytest.raises(UserError, match="boxes only"):
        InstanceSegmentation(steps=1, sizes=SIZES)(random_network(), voc, voc, work)
    with pytest.raises(UserError, match=r"0 classes of the training images have any \(none\)"):
        KeypointDetection(steps=1, sizes=SIZES)(random_network(), voc, voc, work)
    write_voc(tmp_path / "voc", {"1": [("person", (1, 1, 9, 9), 0)], "2": []}, "val")
    with pytest.raises(UserError, match="the images have no keypoints"):  # before anything is trained
        KeypointDetection(steps=1, sizes=SIZES).task(source, open_annotated(f"{tmp_path}/voc#val"))
    with pytest.raises(UserError, match="built on ResNets"):
        protocol(random_encoder(tiny_run()), source, source, work)
    parts = [SelectedImages(source, rows) for rows in ([0, 1, 2], [2, 3], [0, 2])]
    shared = "a set of its own, but 1 of its 2 images is a training image too, such as 3.png"
    assert protocol.task(parts[0], parts[1]).test_split == shared
    with pytest.raises(UserError, match="all 2 test images are training images too, such as 5.png"):
        protocol.task(JoinedImages(parts[:2]), OfClasses(parts[2], source.classes))
    empty = [number for number in range(len(source)) if not len(source.instances(number))]
    with pytest.raises(UserError, match="none of the 1 training images has boxes"):
        protocol(random_network(), SelectedImages(source, empty), source, work)
    with pytest.raises(UserError, match="too few to hold out"):
        saved_run(tmp_path / "run", RUN)
        evaluate(tmp_path / "run", protocol, voc)


def test_a_missing_pycocotools_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = open_annotated(small_coco(tmp_path))
    for name in [name for name in sys.modules if name.startswith("pycocotools")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pycocotools", None)
    with pytest.raises(UserError, match=r"pip install 'vantage-ssl\[detection\]'"):
        Detection(steps=1, sizes=SIZES)(random_network(), source, source, cpu_work(tmp_path))


def test_a_result_recorded_under_earlier_names_of_settings_is_read(tmp_path: Path) -> None:
    """Settings called batch and rate are read; with another learning rate it is another evaluation."""
    protocol = Detection(batch_size=2, learning_rate=0.1)
    facts = dict.fromkeys(("test_split", "view", "checkpoint", "encoder", "train", "test", "device"), "")
    outcome = Outcome({"AP": 1.0}, 5, 3, {})
    earlier_result = Result(
        "detection", 2, dataclasses.asdict(protocol), {"moco_v2": outcome}, **facts, resident_bytes=0, libraries={}
    )
    record = json.loads(json.dumps(dataclasses.asdict(earlier_result)))
    record["settings"]["batch"] = record["settings"].pop("batch_size")
    record["settings"]["rate"] = record["settings"].pop("learning_rate")
    file = tmp_path / "detection.json"
    file.write_text(json.dumps(record))
    assert find_outcome([file], "moco_v2", earlier_result) == outcome
    other = dataclasses.replace(earlier_result, settings=earlier_result.settings | {"learning_rate": 0.2})
    assert find_outcome([file], "moco_v2", other) is None


@pytest.mark.slow
def test_a_stopped_evaluation_ends_with_the_same_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "vantage.evaluate.protocols.detection.detector_protocol.DetectorTraining",
        functools.partial(DetectorTraining, minutes=0.0),
    )
    source, network = open_annotated(small_coco(tmp_path)), FourthStage(3)
    protocol = DetectionC4(steps=2, batch_size=2, precise_batches=1, sizes=SIZES, network_on=network)

    class Stopped(Exception):
        pass

    class Stop(QuietProgress):
        """Stops in training, when one step is saved, and in testing."""

        def __init__(self, where: str) -> None:
            self.where, self.name = where, ""

        def start(self, name: str, total: int, completed: int = 0) -> None:
            self.name = name.split(",")[0]

        def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
            if self.name == self.where and completed == 2:
                raise Stopped

    whole = protocol(random_network(), source, source, cpu_work(tmp_path / "whole"))
    assert len(whole.details["losses"]) == 2
    again = cpu_work(tmp_path / "stopped")
    for where in ("training a detector", "detections"):
        with pytest.raises(Stopped):
            protocol(random_network(), source, source, dataclasses.replace(again, progress=Stop(where)))
        assert len(list((tmp_path / "stopped").rglob("detectors/*"))) == 1
    assert protocol(random_network(), source, source, again) == whole
    assert not list((tmp_path / "stopped").rglob("detectors/*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "network", "first", "rate"),
    [
        (InstanceSegmentation, Pyramid(), "mask AP", 0.04),
        (KeypointDetection, Pyramid(), "keypoint AP", 0.16),
        (DetectionC4, FourthStage(), "AP", 0.04),
        (InstancesC4, FourthStage(), "mask AP", 0.04),
        (CascadeInstances, Cascade(), "mask AP", 0.04),
    ],
)
def test_the_loss_falls_and_precision_is_computed(
    tmp_path: Path, kind: Any, network: Any, first: str, rate: float
) -> None:
    content, pictures = coco_content(4)
    source = open_annotated(write_coco(tmp_path, content, pictures))
    sizes = Sizes((48,), 48, 64, (8, 16, 24, 32, 48), regions=8, proposals=20)
    protocol = kind(steps=12, batch_size=2, learning_rate=rate, precise_batches=2, sizes=sizes, network_on=network)
    outcome = protocol(random_network(), source, source, cpu_work(tmp_path))
    losses = outcome.details["losses"]
    assert next(iter(outcome.measures)) == first and all(0 <= value <= 100 for value in outcome.measures.values())
    assert sum(losses[-3:]) < 0.9 * sum(losses[:3])


@pytest.mark.slow
def test_a_detector_can_overfit_a_few_images(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path, images=4))
    sizes = Sizes((48,), 48, 64, (8, 16, 24, 32, 48), regions=16, proposals=40)
    protocol = Detection(steps=70, batch_size=4, learning_rate=0.08, precise_batches=5, sizes=sizes)
    outcome = protocol(random_network(), source, source, cpu_work(tmp_path))
    assert outcome.measures["AP50"] > 80
