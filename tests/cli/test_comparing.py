"""Protocols of a comparison with settings of their own: as options, or as a result has them."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tiny import TinyMaps, images, saved_run, tiny_run

from vantage.cli import main
from vantage.cli.compare import _settable
from vantage.cli.evaluate.protocols import _of_result, protocols
from vantage.encoders import Encoder, LinearHead, Momentum
from vantage.errors import UserError
from vantage.evaluate import KNN, LinearCached, LinearMoCo, LowShot
from vantage.evaluate.compare.trials import Refusal
from vantage.evaluate.protocols.detection import Detection


@pytest.fixture
def compared_protocols(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The protocols that would be compared; nothing is."""
    asked_protocols: list[Any] = []

    def judge(folders: Any, tasks: Any, *_: Any) -> None:
        asked_protocols.extend(task.protocol for task in tasks)
        raise UserError("that will do")

    monkeypatch.setattr("vantage.evaluate.compare.comparison.compare_by", judge)
    monkeypatch.setattr("vantage.frozen.encoder.load", lambda *_: None)
    monkeypatch.setattr("vantage.cli.reading.options.ReadingOptions.open", lambda *_: images(4, 0))
    monkeypatch.setattr("vantage.evaluate.task.train_and_test", lambda *_: (images(4, 0), images(4, 1), ""))
    return asked_protocols


def result(file: Path, by: Any, **other: Any) -> str:
    record = {"protocol": by.name, "version": by.version, "settings": asdict(by), "outcomes": {}}
    file.write_text(json.dumps(record | other))
    return str(file)


def test_settings_are_options_that_begin_with_the_protocol(compared_protocols: list[Any], tmp_path: Path) -> None:
    words = ["compare", "RUN", "--data", "X"]
    settings = ["--set", "knn.k=20", "--set", "linear-cached.l2=0.1,1", "--set", "linear_cached.seed=3"]
    assert main([*words, *settings]) == 2
    assert compared_protocols == [KNN(k=20), LinearCached(l2=(0.1, 1.0), seed=3)]
    compared_protocols.clear()
    assert (
        main([*words, "--protocols", "linear, lowshot", "--set", "linear.epochs=5", "--set", "lowshot.shots=1,2"]) == 2
    )
    assert compared_protocols == [LinearMoCo(epochs=5), LowShot(shots=(1, 2))]


def test_a_result_names_protocol_and_settings(compared_protocols: list[Any], tmp_path: Path) -> None:
    many = LowShot(shots=(1, 2), costs=(0.5, 1.0))
    files = [result(tmp_path / "a.json", KNN(k=7)), result(tmp_path / "b.json", many)]
    assert main(["compare", "RUN", "--data", "X", "--protocols", f"{files[0]},knn,{files[1]}", "--set=knn.k=9"]) == 2
    assert compared_protocols == [KNN(k=7), KNN(k=9), many]


def test_a_detection_result_with_earlier_names_of_settings_is_read(tmp_path: Path) -> None:
    protocol = Detection(batch_size=8, learning_rate=0.1)
    settings = asdict(protocol)
    settings["batch"], settings["rate"] = settings.pop("batch_size"), settings.pop("learning_rate")
    assert _of_result(Path(result(tmp_path / "old.json", protocol, settings=settings)), protocols()) == protocol


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--protocols knn,transfer", "transfer is not a protocol: vantage evaluate transfer evaluates one run on"),
        ("--protocols knn,keypoints", "knn is evaluated on images with classes and keypoints on images with boxes"),
        ("--protocols knn,segmentation", "give those of one with --set segmentation.data=PATH"),
        ("--protocols knn,detection --set detection.data=no.json", "no.json does not exist. Check the path"),
        (
            "--protocols detection-c4 --set detection.data=X",
            "detection is not compared; add it with --protocols detection",
        ),
        ("--protocols knn --set knn.trials=3", "knn: trials is 3, but this protocol draws nothing at random"),
        ("--protocols svm --set svm.trials=0", "svm: trials is 0; it must be 1 or more"),
        ("--protocols DIR/detection.json --set detection.steps=3", "has the settings of a result; add detection to"),
        ("--protocols kn", "there is no protocol 'kn'; did you mean knn? (protocols: knn, nearest-neighbor"),
        ("--protocols nowhere.json", "cannot read nowhere.json: No such file"),
        ("--protocols DIR/no.json", "no.json is not a result of vantage evaluate"),
        ("--protocols DIR/list.json", "list.json is not a result of vantage evaluate"),
        ("--protocols DIR/old.json", "old.json is a result of knn version 0, but this is version 1"),
        ("--protocols DIR/other.json", "is a result of 'detect'; did you mean detection?"),
        ("--protocols DIR/field.json", "field.json: settings.kk: KNN has no field 'kk'; did you mean k?"),
        ("--protocols DIR/type.json", 'type.json: settings.k: expected int, found "five"'),
        ("--protocols DIR/value.json", "value.json: settings: kNN: k is 0"),
        ("--set knn.kk=3", "knn has no field 'kk'; did you mean k?"),
        ("--knn.k 3", "compare has no option --knn.k; did you mean --set knn.k=3?"),
        ("--k 3", "compare has no option --k; did you mean --set knn.k=3?"),
        ("--set k=3", "--set k=3: write NAME.FIELD=VALUE, such as --set knn.seed=1 (names: knn, linear-cached)"),
        ("--set detection.batch=2 --protocols detection", "detection has no field 'batch'; did you mean batch_size?"),
        ("--set detection.rate=2 --protocols detection", "no field 'rate'; did you mean learning_rate?"),
        ("--set knn.k=five", "k: expected a whole number, found five"),
        ("--set knn.k=0", "k is 0"),
        ("--set svm.costs=1", "--set svm.costs=1: svm is not compared; add it with --protocols knn,linear-cached,svm"),
    ],
)
def test_mistakes_in_settings_are_reported(
    words: str, sentence: str, compared_protocols: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "no.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    result(tmp_path / "old.json", KNN(), version=0)
    result(tmp_path / "other.json", KNN(), protocol="detect")
    result(tmp_path / "detection.json", Detection())
    result(tmp_path / "field.json", KNN(), settings={"kk": 3})
    result(tmp_path / "type.json", KNN(), settings={"k": "five"})
    result(tmp_path / "value.json", KNN(), settings={"k": 0})
    assert main(["compare", "RUN", "--data", "X", *words.replace("DIR", str(tmp_path)).split()]) == 2
    message = capsys.readouterr().err
    assert sentence in message and message.count("\n") == 1, message
    assert not compared_protocols


def test_images_trials_and_measures_are_no_settings_of_a_protocol() -> None:
    for kind in protocols().values():
        assert {"data", "test", "classes", "trials", "measures"}.isdisjoint(kind.__dataclass_fields__)
    assert {"knn.k", "detection.sizes.test_side", "segmentation.classes", "svm.trials"} <= set(_settable())


@pytest.mark.usefixtures("compared_protocols")
def test_sentences_of_a_protocol_name_the_options_that_compare_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def answer(message: str, name: str, protocol: Any) -> str:
        """What `compare` says if a protocol refuses with this message."""

        def refuse(*_: Any) -> None:
            raise Refusal(message, protocol)

        monkeypatch.setattr("vantage.evaluate.compare.comparison.compare_by", refuse)
        assert main(["compare", "RUN", "--data", "X", "--protocols", name]) == 2
        return capsys.readouterr().err

    plain = "ask for --shots 1, or for fewer --negatives (--k 3); see --help, or --shots."
    sentence = "ask for --set lowshot.shots=1, or for fewer --set lowshot.negatives (--k 3); see --help, or --set"
    assert answer(plain, "lowshot", LowShot()) == f"vantage: {sentence} lowshot.shots.\n"
    assert answer("(--k 3)", "knn", KNN()) == "vantage: (--set knn.k=3)\n"
    several = answer("choose --shots 1 2. Or (--learning-rates 0.5)", "linear-moco", LinearMoCo())
    assert several == "vantage: choose --shots 1 2. Or (--set linear-moco.learning_rates=0.5)\n"
    assert answer("choose --shots 1 2.", "lowshot", LowShot()) == "vantage: choose --set lowshot.shots=1,2.\n"


def test_images_with_masks_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    saved_run(tmp_path / "run", tiny_run(Momentum(Encoder(TinyMaps(), LinearHead(8)))))
    for number in range(5):
        mask = np.zeros((16, 16), np.uint8)
        mask[4:12, 4:12] = 1
        for folder, pixels in (("images", np.repeat(mask[..., None] * 200, 3, 2)), ("masks", mask)):
            (tmp_path / folder).mkdir(exist_ok=True)
            Image.fromarray(pixels).save(tmp_path / folder / f"{number}.png")
    (tmp_path / "names.txt").write_text("ground\nsquare\n")
    words = ["--import", "tiny", "compare", str(tmp_path / "run"), "--protocols", "segmentation", "--quiet"]
    words += ["--set", f"segmentation.data={tmp_path}/images#masks", "--set", "segmentation.epochs=1", "--device=cpu"]
    assert main([*words, "--set", f"segmentation.classes={tmp_path / 'names.txt'}"]) == 0
    output = capsys.readouterr().out
    assert "segmentation v1 epochs=1, mIoU (%)" in output and "| raw pixels as moco_v2 sees them " in output
    assert "a fifth of the same 5 images" in output
    assert main([*words, "--set", "segmentation.classes=nowhere.txt"]) == 2
    assert "--set segmentation.classes nowhere.txt cannot be read" in capsys.readouterr().err


def test_transfer_takes_the_settings_of_a_result_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    saved_run(tmp_path / "run", tiny_run())
    source = images(15, 0, 3)
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(15)])
    np.savez(tmp_path / "images.npz", images=pixels, labels=np.arange(15) % 3)
    by = result(tmp_path / "knn.json", KNN(k=3, temperature=0.5))
    words = ["--import", "tiny", "evaluate", "transfer", str(tmp_path / "run"), "--sets", f"a={tmp_path}/images.npz"]
    assert main([*words, "--by", by, "--set", "k=2", "--quiet"]) == 0
    output = capsys.readouterr().out
    assert "Not by default: k is 2 (by default 200), temperature is 0.5 (by default 0.07)." in output
    assert main([*words, "--by", "nearest-neighbor", "--quiet"]) == 0
    assert "Not by default" not in capsys.readouterr().out
    assert main([*words, "--by", "nearest"]) == 2
    assert "did you mean nearest-neighbor?" in capsys.readouterr().err
