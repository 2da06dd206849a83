"""A device that this machine lacks is refused in one plain sentence, in every verb, before anything else is done."""

import sys
from pathlib import Path

import pytest
import torch

from vantage import UserError
from vantage.cli import main
from vantage.machine import devices

GPUS = ["cpu", "cuda:0", "cuda:1"]


def test_what_is_here_is_a_device() -> None:
    names = devices.names_here()
    assert names[0] == "cpu" and len(set(names)) == len(names)
    for name in (*names, "cpu:0", "auto"):
        assert devices.device_named(name).type in {each.partition(":")[0] for each in names}


@pytest.mark.parametrize(
    ("name", "names", "words"),
    [
        ("cuda", ["cpu"], "there is no CUDA device here"),
        ("cuda:7", ["cpu"], "'cuda:7' was asked for: give cpu or auto"),
        ("gpu", ["cpu"], "there is no GPU here"),
        ("mps", GPUS, "there is no MPS device here, but 'mps' was asked for: give cpu, cuda:0, cuda:1 or auto"),
        ("gpu", GPUS, "there is no device 'gpu'; did you mean cuda:0?"),
        ("cuda:7", GPUS, "there is no device 'cuda:7'; did you mean cuda:"),
        ("CPU", ["cpu"], "there is no device 'CPU'; did you mean cpu?"),
        ("cpu:3", ["cpu"], "there is no device 'cpu:3'; did you mean cpu?"),
        ("banana", ["cpu"], "there is no device 'banana' (devices: auto, cpu)"),
        ("meta", ["cpu"], "there is no device 'meta' (devices: auto, cpu)"),
    ],
)
def test_another_name_is_refused_with_what_is_here(
    name: str, names: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "names_here", lambda: names)
    monkeypatch.setattr(torch.backends.cuda, "is_built", lambda: True)
    with pytest.raises(UserError) as problem:
        devices.device_named(name)
    assert words in str(problem.value)


@pytest.mark.parametrize(
    ("gpus", "hardware", "words"),
    [
        (0, ("cuda", 1, "32-true"), "there is no CUDA device here"),
        (0, ("auto", 1, "16-mixed"), "16-mixed needs a CUDA device, and there is none here: give 32-true"),
        (2, ("cpu", 1, "16-mixed"), "16-mixed needs a CUDA device, and the run is on the CPU"),
        (2, ("auto", 3, "32-true"), "3 devices are asked for, but this machine has 2: give --devices 2 or fewer"),
    ],
)
def test_a_training_asks_for_what_is_here(
    gpus: int, hardware: tuple[str, int, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(devices, "names_here", lambda: ["cpu", *(f"cuda:{number}" for number in range(gpus))])
    with pytest.raises(UserError, match=words):
        devices.check_hardware(*hardware)
    devices.check_hardware("auto", max(1, gpus), "bf16-mixed")
    devices.check_hardware("cpu", 4, "64-true")


def test_compiling_asks_for_a_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without one, torch would raise at the first step, after the images were read."""
    monkeypatch.setenv("CXX", str(tmp_path / "g++"))
    with pytest.raises(
        UserError, match="needs a C\\+\\+ compiler, and there is no .*g\\+\\+ here: install one, name it in"
    ):
        devices.check_hardware("cpu", 1, "32-true", compiled=True)
    monkeypatch.setenv("CXX", f"{sys.executable} --any-option")
    devices.check_hardware("cpu", 1, "32-true", compiled=True)


@pytest.mark.parametrize(
    "words",
    [
        "embed nowhere --data nowhere --out x.npy",
        "find duplicates nowhere --data nowhere --out x.csv",
        "report nowhere --data nowhere",
        "evaluate knn nowhere --data nowhere",
        "evaluate retrieval nowhere --data nowhere",
        "evaluate transfer nowhere --sets nowhere",
        "compare nowhere --data nowhere",
        "benefit nowhere --data nowhere",
        "analyse similarity nowhere --data nowhere",
        "reproduce",
        "views learn unsupervised --data nowhere --out views --set device=banana",
    ],
)
def test_every_verb_that_takes_a_device_looks_for_it_first(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    device = [] if "device=" in words else ["--device", "banana"]
    assert main([*words.split(), *device]) == 2
    output = capsys.readouterr()
    assert (
        output.err.startswith("vantage: there is no device 'banana' (devices: auto, cpu")
        and output.err.count("\n") == 1
    )
    assert output.out == "" and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("more", [(), ("--minutes", "5")])
def test_training_looks_for_its_device_before_the_images(
    more: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(devices, "names_here", lambda: ["cpu"])
    monkeypatch.chdir(tmp_path)
    words = ["pretrain", "simclr", "--data", "nowhere", "--out", "run", *more]
    for wish, answer in (("--precision=16-mixed", "16-mixed"), ("--set=hardware.accelerator=cuda", "CUDA device here")):
        assert main([*words, wish]) == 2
        assert answer in capsys.readouterr().err and list(tmp_path.iterdir()) == []
