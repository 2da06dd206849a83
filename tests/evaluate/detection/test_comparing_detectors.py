"""Detectors in a comparison, from the command line: their images, several trials, and errors."""

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from annotated import small_coco, write_voc
from tiny import ALLOW, images, saved_run, tiny_run

from vantage.cli import main
from vantage.composition.codec import allowing
from vantage.encoders import Encoder, LinearHead, ResNet, Shared
from vantage.encoding import Work
from vantage.errors import UserError
from vantage.evaluate import Outcome, evaluate, task_of
from vantage.evaluate.protocols.detection import (
    Detection,
    SelectedImages,
    Sizes,
    open_annotated,
)
from vantage.evaluate.protocols.detection.detector_protocol import DetectorProtocol
from vantage.frozen.encoder import FrozenEncoder
from vantage.learner import Learner
from vantage.training.folder import checkpoint, settings

RUN = replace(tiny_run(), encoders=Shared(Encoder(ResNet(18), LinearHead(8))))
SIZES = Sizes((32,), 32, 48, (8, 16, 24, 32, 48), regions=4, proposals=8)
WORDS = [
    *("--set", "detection.steps=2", "--set", "detection.batch_size=2", "--set", "detection.precise-batches=1"),
    *("--set", "detection.sizes=Sizes((32,), 32, 48, (8, 16, 24, 32, 48), regions=4)"),
    *("--set", "detection.sizes.proposals=8", "--device", "cpu"),
]


def labeled(folder: Path) -> str:
    """Twelve labeled images in a file."""
    source = images(12, 0, 3)
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(12)])
    np.savez(folder / "images.npz", images=pixels, labels=np.arange(12) % 3)
    return str(folder / "images.npz")


@pytest.fixture
def trainings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[str, int, int]]:
    """Encoders, seeds and numbers of images of the detectors that would be trained; none is."""
    calls: list[tuple[str, int, int]] = []

    def judge(self: DetectorProtocol, encoder: FrozenEncoder, train: object, test: object, work: Work) -> Outcome:
        if len(calls) == 3:
            raise KeyboardInterrupt
        count = len(open_annotated(str(tmp_path / "a/annotations/instances_train.json")))
        calls.append((encoder.name, self.seed, count))
        return Outcome({"AP": 10.0 + self.seed, "AP50": 50.0 + self.seed}, count, 3, {})

    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(DetectorProtocol, "__call__", judge)
    return calls


@pytest.fixture
def any_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Accepts every network, so that a small one will do where no detector is trained."""
    monkeypatch.setattr("vantage.evaluate.protocols.detection.detector_protocol.check_backbone", lambda encoder: None)


@pytest.mark.usefixtures("any_network")
def test_a_stopped_comparison_resumes_with_the_missing_trial(
    tmp_path: Path, trainings: list[tuple[str, int, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    run, out = str(tmp_path / "run"), tmp_path / "table.csv"
    saved_run(Path(run), tiny_run())
    train, test = small_coco(tmp_path / "a"), small_coco(tmp_path / "b", "val", 3, 1)
    words = [
        "--import",
        "tiny",
        "compare",
        run,
        "--protocols",
        "knn,detection",
        "--data",
        labeled(tmp_path),
        "--set",
        "knn.k=2",
    ]
    for setting in (f"data={train}", f"test={test}", "trials=2", "measures=AP50,AP"):
        words += ["--set", f"detection.{setting}"]
    words += [*WORDS, "--out", str(out)]
    assert main(words) == 130  # interrupted in the last of four trainings
    assert trainings == [("moco_v2", 0, 6), ("moco_v2", 1, 6), ("random encoder", 0, 6)] and not out.exists()
    trainings.clear()
    assert main(words) == 0
    assert trainings == [("random encoder", 1, 6)]
    assert "trial 1 of 2, read from its record" in capsys.readouterr().err
    rows = [
        (row["row"], row["measure"], row["values"], row["trials"])
        for row in csv.DictReader(out.read_text().splitlines())
    ]
    assert ("moco_v2", "AP50", "50.5", "50.0 51.0") in rows and ("moco_v2", "AP", "10.5", "10.0 11.0") in rows
    assert ("raw pixels as moco_v2 sees them", "AP", "", "") in rows and len(rows) == 9


@pytest.mark.usefixtures("any_network")
def test_evaluate_and_compare_share_their_results(tmp_path: Path, trainings: list[tuple[str, int, int]]) -> None:
    run, protocol = tmp_path / "run", Detection(steps=2, batch_size=2, precise_batches=1, sizes=SIZES, seed=1)
    saved_run(run, tiny_run())
    train, test = small_coco(tmp_path / "a"), small_coco(tmp_path / "b", "val", 3, 1)
    work = Work("cpu", num_workers=2, cache=tmp_path / "cache")
    with allowing(*ALLOW):
        evaluate(run, protocol, open_annotated(train), open_annotated(test), baselines=True, work=work)
    assert len(trainings) == 2
    (file,) = (run / "evaluations").glob("*.json")
    words = ["--import", "tiny", "compare", str(run), "--protocols", str(file), "--data", str(train)]
    assert main([*words, "--test", str(test), "--device", "cpu"]) == 0 and len(trainings) == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("knn,detection --data LABELED", "knn is evaluated on images with classes and detection on images with boxes"),
        ("knn,detection --data LABELED", "give those of one with --set detection.data=PATH (and detection.test)"),
        ("detection", "compare needs --data: the images"),
        ("detection --data LABELED", "is not a COCO file: detection needs boxes"),
        ("detection --data BOXES --test BOXES", "the test images are the training images"),
        ("detection,instances --data BOXES --test VOC", "needs a mask of every instance, but the test images"),
        ("keypoints --data VOC --test BOXES", "0 classes of the training images have any (none)"),
        ("detection --data BOXES --test EMPTY", "tiny by detection: detectors are built on ResNets"),
        ("knn --data LABELED", "needs as many labeled training images, but there are 9: choose k of at most 9"),
        ("knn --data LABELED", "such as --set knn.k=9"),
    ],
)
def test_mistakes_are_reported_before_anything_is_trained(
    words: str, sentence: str, tmp_path: Path, trainings: list[tuple[str, int, int]], capsys: pytest.CaptureFixture[str]
) -> None:
    saved_run(tmp_path / "tiny", tiny_run())
    write_voc(tmp_path / "voc", {"1": [("person", (1, 1, 9, 9), 0)], "2": []}, "train")
    paths: dict[str, Callable[[], str]] = {
        "LABELED": lambda: labeled(tmp_path),
        "BOXES": lambda: str(small_coco(tmp_path / "a")),
        "EMPTY": lambda: str(small_coco(tmp_path / "b", "val", 3, 1)),
        "VOC": lambda: f"{tmp_path}/voc#train",
    }
    command = [paths[word]() if word in paths else word for word in words.split()]
    assert main(["--import", "tiny", "compare", str(tmp_path / "tiny"), "--quiet", "--protocols", *command]) == 2
    message = capsys.readouterr().err
    assert sentence in message and message.count("\n") == 1, message
    assert not trainings


def test_unsuitable_images_are_refused(tmp_path: Path) -> None:
    source = open_annotated(small_coco(tmp_path))
    empty = [number for number in range(len(source)) if not len(source.instances(number))]
    with pytest.raises(UserError, match="none of the 1 training images has boxes"):
        task_of(Detection(), SelectedImages(source, empty), source)
    with pytest.raises(UserError, match="no test image shows anything to detect"):  # before hours of training
        task_of(Detection(), open_annotated(small_coco(tmp_path / "others")), SelectedImages(source, empty))


@pytest.mark.slow
def test_a_table_of_real_detectors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    learner = Learner(RUN.encoders, RUN.branches, images=64, seed=0)
    settings.write(RUN, tmp_path / "run")
    state = {f"learner.{name}": value for name, value in learner.state_dict().items()}
    checkpoint.save(tmp_path / "run", 7, state, {})
    words = ["compare", str(tmp_path / "run"), "--protocols", "detection", "--data", str(small_coco(tmp_path / "a"))]
    words += WORDS
    assert main(words) == 0
    output = capsys.readouterr()
    assert output.out.count("| moco_v2 ") == 1 and "a fifth of the same 6 images" in output.out
    assert main(words) == 0
    again = capsys.readouterr()
    assert again.out == output.out and again.err.count("read from its record") == 2
    assert not list((tmp_path / "cache").rglob("detectors/*"))
