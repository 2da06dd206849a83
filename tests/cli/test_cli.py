"""The command line as a whole: mistakes are reported in a few lines, bugs are shown, and results can be piped."""

import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stubbed_training import TrainingStub, make_images

import vantage
from vantage.cli import main
from vantage.recipes import moco_v2
from vantage.training.folder import settings

pytestmark = pytest.mark.usefixtures("own_cache")

MOST_LINES = 4


@pytest.mark.parametrize(
    ("words", "pattern"),
    [
        ("pretran", "no verb 'pretran'; did you mean pretrain?"),
        ("analyze views runs/first", "no verb 'analyze'; did you mean analyse?"),
        ("zzz", "verbs: recipes, pretrain"),
        ("--quiet", "no verb is given"),
        ("recipes --import", "--import needs the name of a module"),
        ("recipes --import no_such_module_here", "no module of this name is in this folder or installed"),
        ("recipes moco_v3", "no recipe 'moco_v3'; did you mean moco_v"),
        ("recipes --sise 3", "no option --sise; did you mean --size?"),
        ("pretrain", "pretrain needs --data: a folder"),
        ("pretrain --data OUT/nowhere --out OUT", "nowhere does not exist"),
        ("pretrain --data IMAGES --out OUT --minutes 0", "--minutes 0: give a finite number of minutes above 0"),
        ("pretrain --data IMAGES --out OUT --minutes inf", "--minutes inf: give a finite number of minutes above 0"),
        ("pretrain --data IMAGES --out OUT --minutes nan", "--minutes nan: give a finite number of minutes above 0"),
        ("pretrain moco_v2 --data IMAGES --out OUT --minutes soon", "--minutes: expected a number, found soon"),
        ("pretrain moco --data x --out y", "no recipe 'moco'; did you mean moco_v"),
        ("pretrain moco_v2 --out OUT", "needs --data: a folder"),
        ("pretrain moco_v2 --out OUT --data OUT/nowhere", "nowhere does not exist"),
        ("pretrain moco_v2 --out OUT --data IMAGES --epocs 3", "no option --epocs; did you mean --epochs?"),
        ("pretrain moco_v2 --resume RUN", "no option --resume; did you mean vantage resume RUN?"),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --epochs five",
            "--epochs: expected a whole number, found five",
        ),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --epochs",
            "--epochs: expected a whole number, found nothing",
        ),
        ("pretrain moco_v2 --out OUT --data IMAGES --epochs 0", "epochs is 0"),
        ("pretrain moco_v2 --out OUT --data IMAGES --nodes 2", "not started by torchrun"),
        ("pretrain moco_v2 --out OUT --data IMAGES --precision 8", "expected 32-true, bf16-mixed,"),
        ("pretrain moco_v2 --out OUT --data IMAGES --batch-size 7 --set accumulate=2", "use a batch of 6"),
        ("pretrain moco_v2 --out OUT --data IMAGES --set memory.length=0", "a queue of length 0"),
        ("pretrain moco_v2 --out OUT --data IMAGES --set epochs", "'epochs' sets nothing: write PATH=VALUE"),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --set temprature=1",
            "'temprature'; did you mean branches.0.esti",
        ),
        ("pretrain moco_v2 --out OUT --data IMAGES --set negatives=Rnig()", "no part 'Rnig'; did you mean Ring?"),
        ("pretrain moco_v2 --out OUT --data IMAGES --set estimator=Ring()", "expected Estimator .*found the part Ring"),
        ("pretrain moco_v2 --out OUT --data IMAGES --set recipe=x", "no field 'recipe'"),
        ("pretrain moco_v2 --out OUT --data IMAGES --backbone resnet19", "no backbone 'resnet19'; did you mean resnet"),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --backbone resnet9 --set backbone=ResNet(18)",
            "--backbone is given, but --set encoders.encoder.backbone replaces what it chooses: leave one out",
        ),
        (
            "pretrain cmc --minutes 1 --out OUT --data IMAGES --optimizer lars --set optimizer=SGD()",
            "--optimizer is given, but --set optimizer replaces what it chooses: leave one out",
        ),
        (
            "analyse views crop --out OUT --data IMAGES --backbone resnet9"
            " --set encoders.encoder=Encoder(ResNet(18),MLP(512,128))",
            "--backbone is given, but --set encoders.encoder replaces",
        ),
        (
            "pretrain moco_v2 --out OUT --data IMAGES --optimizer adm",
            r"there is no optimizer 'adm'; did you mean adamw\? \(optimizers: sgd, adamw, lars, MODULE:NAME",
        ),
        ("pretrain moco_v2 --out OUT --data IMAGES --size 0", "a crop's size must be 1 to 4,096 pixels, found 0"),
        ("views show moco_v2 --data IMAGES --size 0", "a crop's size must be 1 to 4,096 pixels, found 0"),
        ("pretrain moco_v2 --out OUT --data IMAGES stray", "pretrain has no use for 'stray': --data takes one value"),
        ("pretrain moco_v2 --out IMAGES/a/0.png --data IMAGES", "is a file: name a folder"),
        ("pretrain moco_v2 --out RUN --data IMAGES", "already holds a run: continue it with `vantage resume"),
        ("resume", "resume needs RUN: folder of the run"),
        ("resume OUT", "holds no run"),
        ("resume RUN --set epochs=7", "epochs is 8 in the run, 7 was asked"),
        ("resume RUN --set branches.0.memory.length=7", r"branches\.0\.memory\.length is 20 in the run, 7 was asked"),
        ("resume RUN --epochs 7", "--epochs: a run keeps its length; .* --init RUN --data PATH --epochs 7 goes on"),
        ("resume RUN --minutes=2", "--minutes: .*; vantage pretrain --init RUN --data PATH --minutes 2 goes on"),
        ("resume RUN --minutes", "--init RUN --data PATH --minutes N goes on in a new run from its networks"),
        ("resume RUN --seed 7", "no option --seed; did you mean --set seed=7\\?"),
        ("embed RUN", "needs --data"),
        ("embed RUN --data IMAGES", "needs --out"),
        ("embed RUN --data IMAGES --out OUT", "holds no checkpoint"),
        ("embed --data IMAGES --out OUT", "RUN"),
        ("embed RUN --data OUT/nowhere --out OUT.npy", "holds no checkpoint"),
        ("embed RUN --data IMAGES --quite", "no option --quite; did you mean --quiet?"),
        ("evaluate knn RUN --data OUT/nowhere", "holds no checkpoint"),
        ("evaluate", "needs a protocol first"),
        ("evaluate kn RUN --data IMAGES", "no protocol 'kn'; did you mean knn?"),
        ("evaluate knn RUN", "needs --data"),
        ("evaluate knn RUN --data IMAGES --kk 3", "no option --kk; did you mean --k?"),
        ("evaluate knn RUN --data IMAGES --k 0", "k is 0"),
        ("evaluate knn RUN --data IMAGES --set k=0", "k is 0"),
        ("evaluate nowhere:KNN RUN --data IMAGES", "allow it by name .--import nowhere"),
        (
            "export RUN --to onxn",
            "--to: expected torchvision, timm, safetensors, detectron2, onnx or torch, found onxn",
        ),
        ("export RUN --to onnx --data OUT/nowhere", "nowhere does not exist"),
        ("export RUN --out OUT", "needs --to"),
        ("demo --out IMAGES/a/0.png", "is a file: name a folder"),
        ("demo --oot x", "no option --oot; did you mean --out?"),
    ],
)
def test_a_mistake_is_reported_in_a_few_lines(
    words: str, pattern: str, training: TrainingStub, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.write(replace(moco_v2(32).fit(40), epochs=8), tmp_path / "run")
    paths = {"IMAGES": images, "RUN": tmp_path / "run", "OUT": tmp_path / "out"}
    words_with_paths = re.sub("IMAGES|RUN|OUT", lambda match: str(paths[match[0]]), words)
    assert main(words_with_paths.split()) == 2
    output = capsys.readouterr()
    mistake = output.err[output.err.index("vantage: ") :]
    assert re.search(pattern, mistake), mistake
    assert len(mistake.splitlines()) <= MOST_LINES and "Traceback" not in output.err
    assert output.out == ""
    assert training.folder is None


def test_a_mistake_in_a_value_is_reported_before_the_images_are_looked_at(
    training: TrainingStub, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["pretrain", "moco_v2", "--data", "/nowhere", "--out", str(tmp_path / "run"), "--epochs", "five"]) == 2
    assert "--epochs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_terminal_without_greek_letters_or_boxes_is_served(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(vantage.__file__).parents[1]), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "vantage.cli"]
    process = subprocess.run([*command, "recipes", "moco_v2"], capture_output=True, text=True, env=environment)
    assert process.returncode == 0 and "MLP head without normalization, ? .2" in process.stdout, process.stderr
    words = ["export", str(tmp_path), "--to", "timn"]
    process = subprocess.run([*command, *words], capture_output=True, text=True, env=environment)
    assert process.returncode == 2 and process.stderr.startswith("vantage: --to: expected torchvision, timm"), process
    assert "---" not in process.stderr


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (ValueError("Expected more than 1 value per channel when training"), "give a larger --batch-size"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "memory ran out: give a smaller batch"),
        (MemoryError(), "memory ran out"),
        (torch.OutOfMemoryError("CUDA out of memory."), "memory ran out"),
    ],
)
def test_what_torch_says_of_sizes_is_no_bug(
    problem: Exception, words: str, images: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise problem

    monkeypatch.setattr("vantage.training.loop.train", fail)
    assert main(["pretrain", "moco_v2", "--data", str(images), "--out", str(tmp_path / "run"), "--quiet"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("vantage: ") and words in message and message.count("\n") == 1


def test_a_bug_shows_where_it_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, images: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def buggy(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("vantage.training.loop.train", buggy)
    assert main(["pretrain", "moco_v2", "--data", str(images), "--out", str(tmp_path / "run"), "--quiet"]) == 1
    message = capsys.readouterr().err
    assert "Traceback" in message and "ZeroDivisionError: a bug" in message


def test_an_interrupt_is_one_line(
    monkeypatch: pytest.MonkeyPatch, images: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("vantage.training.images.open_images", interrupt)
    assert main(["pretrain", "moco_v2", "--data", str(images), "--out", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err == "vantage: interrupted\n"


# All of it, with nothing replaced


def test_from_images_to_a_backbone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    images = make_images(tmp_path / "images", 16, count=8)
    quick_options = ["--size", "16", "--set", "encoders.encoder.normalization.groups=4", "--precision", "32-true"]
    run = tmp_path / "run"
    pretrain = ["pretrain", "moco_v2", "--data", images, "--out", run, "--epochs", "1", *quick_options]
    later = [
        ["resume", run, "--set", "monitoring.log-every=1"],
        ["embed", run, "--data", images, "--out", tmp_path / "features.npy"],
        ["evaluate", "knn", run, "--data", images, "--k", "3", "--baselines", "--out", tmp_path / "knn.json"],
        ["export", run, "--to", "torchvision"],
    ]
    for words in (pretrain, *later):
        assert main([*map(str, words), "--quiet"]) == 0, capsys.readouterr().err
    output = capsys.readouterr()
    assert output.err == ""
    assert settings.read(run).epochs == 1
    assert np.load(tmp_path / "features.npy").shape == (16, 512)
    assert json.loads((tmp_path / "knn.json").read_text())["settings"]["k"] == 3
    assert "moco_v2: top-1 " in output.out and "raw pixels: top-1 " in output.out
    backbone = run / "backbone-torchvision.safetensors"
    assert f"load_state_dict(load_file('{backbone}'), strict=True)" in output.out and backbone.is_file()


def test_the_process_ends_with_the_status(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(vantage.__file__).parents[1])}
    command = [sys.executable, "-m", "vantage.cli", "pretran"]
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (process.returncode, process.stdout) == (2, "")
    assert process.stderr.startswith("vantage: there is no verb 'pretran'; did you mean pretrain?")


def test_no_objects_are_searched_for_cycles_at_the_end() -> None:
    """With torch it takes a second of a free core, and minutes of a busy one, after everything has been printed."""
    program = """
import atexit, gc
from vantage.cli import main
atexit.register(lambda: print(gc.get_freeze_count() > 1_000))
main(["--version"])
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(vantage.__file__).parents[1])}
    command = [sys.executable, "-c", program]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert process.stdout.splitlines()[1:] == ["True"]
