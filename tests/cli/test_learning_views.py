"""`vantage views learn`, and what is said when its views are trained on."""

import shutil
from pathlib import Path

import pytest
from small_runs import write_images

from vantage.cli import main
from vantage.storage.metrics import Metrics, read_metrics

LEARN = "views learn unsupervised --epochs 2 --size 8 --network convolutions --set batch_size=16"
PRETRAIN = "pretrain cmc --epochs 1 --size 8 --backbone Convolutions((4,8)) --batch-size 16 --precision 32-true"


@pytest.fixture
def learned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A folder of learned views; what was printed is still to be read."""
    data = str(write_images(tmp_path / "images.npz"))
    assert main([*LEARN.split(), "--data", data, "--out", str(tmp_path / "learned")]) == 0
    return tmp_path / "learned"


def pretrain(learned: Path, out: Path) -> list[str]:
    data = str(learned.with_name("images.npz"))
    return [*PRETRAIN.split(), "--learned", str(learned), "--data", data, "--out", str(out)]


def test_it_says_what_the_disk_may_lose(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = sum(file.stat().st_size for file in (learned / "checkpoint").rglob("*") if file.is_file())
    sentence = f"{learned / 'checkpoint'} takes {size / 1e6:,.1f} MB and is no longer needed: you may remove it"
    assert sentence in capsys.readouterr().err.splitlines()
    shutil.rmtree(learned / "checkpoint")
    words = [*LEARN.split(), "--data", str(learned.with_name("images.npz")), "--out", str(learned)]
    assert main(words) == 0 and not (learned / "checkpoint").exists()
    assert "all steps are taken already; the checkpoints were removed" in capsys.readouterr().err


def test_views_that_are_not_fully_learned_are_named(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(pretrain(learned, learned.with_name("whole"))) == 0
    assert "not fully learned" not in capsys.readouterr().err
    Metrics(learned, read_metrics(learned)[0]["step"])  # as after a stop in the second epoch
    (learned / "best.safetensors").unlink()
    assert main(pretrain(learned, learned.with_name("early"))) == 0
    sentence = f"the views in {learned} are not fully learned, after 1 of 2 epochs: training takes last.safetensors as"
    assert sentence in capsys.readouterr().err.replace("\n", " ")


def test_a_run_does_not_begin_among_learned_views(learned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(pretrain(learned, learned)) == 2
    message = capsys.readouterr().err
    assert f"{learned} already holds learned views: give another --out" in message and "resume" not in message
