"""`vantage views learn`, and what is said when its views are trained on."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from small_runs import write_images

from vantage.cli import main
from vantage.storage.metrics import Metrics, read_metrics
from vantage.studies.view_learning import unsupervised

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


def test_a_batch_is_fitted_to_few_images_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, words = str(write_images(tmp_path / "images.npz")), LEARN.partition(" --set ")[0].split()
    for _ in range(2):  # the same command continues
        assert main([*words, "--data", data, "--out", str(tmp_path / "learned")]) == 0
        message = "batch_size is 8 instead of 128: fitted to 43 images"
        assert message in " ".join(capsys.readouterr().err.split())
    assert read_metrics(tmp_path / "learned")[-1]["step"] == 2 * (43 // 8)
    given = [*words, "--set", "batch_size=90", "--data", data, "--out", str(tmp_path / "given")]
    assert main(given) == 2
    assert "too few training images: a step takes 90, found 43" in capsys.readouterr().err


def test_a_batch_that_its_images_suffice_for_stays() -> None:
    sizes = {images: unsupervised(16).fit(images).batch_size for images in (5, 8, 63, 64, 127, 128, 900)}
    assert sizes == {5: 8, 8: 8, 63: 8, 64: 8, 127: 8, 128: 128, 900: 128}
    assert replace(unsupervised(16), batch_size=1_000).fit(900).batch_size == 62
