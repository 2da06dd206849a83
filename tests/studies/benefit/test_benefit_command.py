"""`vantage benefit`, from the command line: an ordinary use, and mistakes."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from tiny import images, saved_run, tiny_run

from vantage.cli import main
from vantage.studies.benefit import comparison, timing
from vantage.studies.benefit.timing import UnitTimes

NETWORK = "mobilenetv3_small_050"
"""A small network of timm, for weights from elsewhere."""

QUICK = "--shares 25 100 --seeds 0 1 --epochs 1 --batch-size 16 --learning-rates 0.05 --device cpu --num-workers 1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, and images."""
    folder = tmp_path_factory.mktemp("command")
    saved_run(folder / "run", tiny_run())
    source = images(36, 0)
    pixels = torch.stack([source.image(number) for number in range(36)]).permute(0, 2, 3, 1).numpy()
    np.savez(folder / "images.npz", images=pixels, labels=np.arange(36) % 3)
    np.savez(folder / "one.npz", images=pixels[:3], labels=np.zeros(3, np.int64))
    np.savez(folder / "plain.npz", images=pixels)
    return folder


@pytest.fixture(autouse=True)
def working_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder, with its own cache, and little time for measuring the speed."""
    monkeypatch.setattr(timing, "_TRAINING_SECONDS", 0.0)
    monkeypatch.setenv("VANTAGE_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)


@pytest.mark.slow
def test_an_ordinary_use(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"benefit run --data images.npz {QUICK}".split()) == 0
    output = capsys.readouterr()
    assert output.out.startswith("With ") and "over training from scratch" in output.out
    assert output.out.rstrip().endswith("run/benefit/benefit.png")
    assert "20 of 20 classifiers are to be trained" in output.err
    names = {path.name for path in (folder / "run" / "benefit").iterdir()}
    assert {"benefit.md", "benefit.csv", "benefit.png", "benefit.json"} <= names
    assert (folder / "run" / "benefit" / "benefit.png").read_bytes()[:4] == b"\x89PNG"
    assert main(f"benefit run --data images.npz {QUICK} --quiet".split()) == 0
    again = capsys.readouterr()
    assert (again.out, again.err) == (output.out, "")


@pytest.mark.slow
def test_weights_from_elsewhere_are_compared_with_a_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import timm

    save_file(timm.create_model(NETWORK, pretrained=False).state_dict(), folder / "weights.safetensors")
    few = "--shares 100 --seeds 0 1 --epochs 1 --batch-size 4 --learning-rates 0.05 --device cpu --num-workers 1"
    others = f"--others timm:{NETWORK}=weights.safetensors --out both"
    assert main(f"benefit run {others} --data images.npz {few}".split()) == 0
    output, table = capsys.readouterr().out, (folder / "both" / "benefit.csv").read_text()
    for way in ("fine-tuned", "frozen"):
        name = f"timm:{NETWORK} (weights.safetensors), {way}"
        assert name in output and table.count(f'"{name}"') == 2


def test_who_stops_it_may_go_on(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(comparison, "train_classifier", stop)
    monkeypatch.setattr(comparison, "measure_unit_times", lambda *_: UnitTimes(0.01, 0.001, 1e-6, 0.5))
    assert main(f"benefit run --data images.npz {QUICK} --out stopped".split()) == 130
    assert "the same command continues" in capsys.readouterr().err
    assert not (folder / "stopped").exists()


@pytest.mark.parametrize(
    "words, sentence",
    [
        ("run", "needs --data"),
        ("missing --data images.npz", "missing"),
        ("run --data missing.npz", "missing.npz"),
        ("run --data images.npz --share 10", "did you mean --shares"),
        ("run --data images.npz --shares 0", "shares of the labels: 0 %"),
        ("run --data images.npz --shares ten", "--shares"),
        ("run --data images.npz --seeds 1", "at least two"),
        ("run --data images.npz --minutes 0", "--minutes 0: give a finite number of minutes above 0"),
        ("run --data images.npz --minutes inf", "--minutes inf: give a finite number of minutes above 0"),
        ("run --data images.npz --minutes 0.001 --out new", "the minutes do not suffice"),
        ("run --data images.npz --others torchvision:resnet18", "names no weights"),
        ("run --data images.npz --others run", "run is named twice"),
        ("run --data images.npz --test images.npz", "the test images are the training images"),
        ("run --data plain.npz", "needs labels"),
        ("run --data one.npz", "one class"),
        ("run --data images.npz --out images.npz", "is a file"),
    ],
)
def test_mistakes_are_a_line_and_leave_nothing(
    words: str, sentence: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["benefit", *words.split(), "--quiet"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("vantage: ") and message.count("\n") == 1 and sentence in message
    assert not (folder / "run" / "benefit").exists() or (folder / "run" / "benefit" / "benefit.png").exists()
