"""What `vantage evaluate` says about its protocols, and where it keeps what came out."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tiny import images, saved_run, tiny_run

from vantage.cli import main
from vantage.evaluate import PROTOCOLS


def test_every_protocol_is_described_in_a_whole_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", "--help"]) == 0
    usage, _, help_text = capsys.readouterr().out.partition("\n\n")
    assert usage == "usage: vantage evaluate PROTOCOL RUN [--option value \u2026]"
    assert "\u2026" not in help_text and "`" not in help_text and "arXiv" not in help_text
    first_words = [line.split()[0] for line in help_text.split("\n\n")[2].splitlines() if not line.startswith(" ")]
    assert [kind.name for kind in PROTOCOLS] == first_words[: len(PROTOCOLS)] and "transfer" in first_words
    assert "As lowshot, with C chosen without test labels" in help_text


@pytest.mark.parametrize("name", [*(kind.name for kind in PROTOCOLS), "segmentation"])
def test_help_speaks_of_protocols_by_their_words(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", name, "--help"]) == 0
    help_text = capsys.readouterr().out
    assert "UserError" not in help_text and not [kind for kind in PROTOCOLS if f"`{kind.__name__}`" in help_text]
    sentences = ("As linear-multi, but", "It is an error to give a backbone")
    assert name != "linear-places" or all(each in " ".join(help_text.split()) for each in sentences)


def test_it_says_where_the_result_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    saved_run(tmp_path / "run", tiny_run())
    source = images(12, 0)
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(12)])
    np.savez(tmp_path / "images.npz", images=pixels, labels=np.arange(12) % 3)
    words = ["--import", "tiny", "evaluate", "knn", str(tmp_path / "run"), "--data", str(tmp_path / "images.npz")]
    for more in ([], ["--out", str(tmp_path / "result.json")]):
        assert main([*words, "--k", "3", *more]) == 0
        (sentence,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("saved in ")]
        assert json.loads(Path(sentence.removeprefix("saved in ")).read_text())["protocol"] == "knn"
        assert sentence.endswith("/result.json") == bool(more)


def test_an_image_damaged_after_all_were_tried_is_left_out_the_next_time(
    tmp_path: Path, own_cache: None, capsys: pytest.CaptureFixture[str]
) -> None:
    saved_run(tmp_path / "run", tiny_run())
    source = images(60, 0)
    for number in range(60):
        path = tmp_path / "photos" / "ab"[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(source.image(number).permute(1, 2, 0).numpy()).save(path)
    words = ["--import", "tiny", "evaluate", "knn", str(tmp_path / "run"), "--data", str(tmp_path / "photos")]
    assert main([*words, "--k", "3"]) == 0
    (tmp_path / "photos" / "a" / "04.png").write_bytes(b"")
    capsys.readouterr()
    assert main([*words, "--k", "4"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert lines[-2].endswith("cannot read the image a/04.png: the file is empty")
    assert lines[-1].endswith("repair it; or run the same again, which tries all images anew")
    assert main([*words, "--k", "4"]) == 0
    assert "1 of 60 images (1.67%) cannot be read: a/04.png" in capsys.readouterr().err


def test_unreadable_images_are_left_out_of_sets_that_are_too_large_to_try_before_training(
    tmp_path: Path, own_cache: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Training replaces an image when it comes up, but an embedding would end with it."""
    monkeypatch.setattr("vantage.training.images._MOST_SCANNED", 5)
    saved_run(tmp_path / "run", tiny_run())
    source = images(6, 0)
    (tmp_path / "photos").mkdir()
    for number in range(6):
        Image.fromarray(source.image(number).permute(1, 2, 0).numpy()).save(tmp_path / "photos" / f"{number}.png")
    (tmp_path / "photos" / "4.png").write_bytes(b"")
    words = ["--import", "tiny", "embed", str(tmp_path / "run"), "--data", str(tmp_path / "photos"), "--out"]
    assert main([*words, str(tmp_path / "all.npy"), "--on-bad-image", "stop"]) == 2
    assert "cannot read the image 4.png" in capsys.readouterr().err
    assert main([*words, str(tmp_path / "readable.npy")]) == 0
    assert len(np.load(tmp_path / "readable.npy")) == 5


def test_images_in_one_folder_have_no_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved_run(tmp_path / "run", tiny_run())
    np.savez(tmp_path / "images.npz", images=np.zeros((6, 8, 8, 3), np.uint8))
    words = ["evaluate", "knn", str(tmp_path / "run"), "--data", str(tmp_path / "images.npz"), "--k", "2"]
    assert main(["--import", "tiny", *words]) == 2
    assert "put each of two or more classes in a folder of its own" in capsys.readouterr().err


def test_neighbors_of_images_alone_in_their_class_are_shown(tmp_path: Path, own_cache: None) -> None:
    """Their labels tell nothing of each other, but a picture needs none."""
    saved_run(tmp_path / "run", tiny_run())
    source = images(12, 0)
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(12)])
    np.savez(tmp_path / "images.npz", images=pixels, labels=np.arange(12))
    words = ["evaluate", "retrieval", str(tmp_path / "run"), "--data", str(tmp_path / "images.npz"), "--k", "3"]
    assert main(["--import", "tiny", *words, "--out", str(tmp_path / "neighbors.png")]) == 0
    assert (tmp_path / "neighbors.png").exists()


@pytest.mark.parametrize("verb", ["evaluate knn", "embed", "compare", "evaluate retrieval"])
def test_a_missing_device_is_reported_before_images_are_read(
    verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved_run(tmp_path / "run", tiny_run())
    more = ["--out", str(tmp_path / "x.npy")] if verb == "embed" else []
    words = [*verb.split(), str(tmp_path / "run"), "--data", str(tmp_path / "nowhere"), "--device", "cuda:99", *more]
    assert main(["--import", "tiny", *words]) == 2
    assert "'cuda:99'" in capsys.readouterr().err


_OWN = """
from dataclasses import dataclass
from typing import ClassVar
from vantage.evaluate import Outcome

@dataclass(frozen=True)
class Own:
    name: ClassVar[str] = "own"
    version: ClassVar[int] = 1
    score: float = 1.0

    def __call__(self, encoder, train, test, work):
        return Outcome({"top-1": 100 / self.score}, 1, 1, {})

@dataclass(frozen=True)
class Needs:
    name: ClassVar[str] = "needs"
    version: ClassVar[int] = 1
    score: float

    def __call__(self, encoder, train, test, work):
        pass
"""


def test_a_result_of_an_own_protocol_names_it_and_its_mistakes_are_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (tmp_path / "own_protocol.py").write_text(_OWN)
    saved_run(tmp_path / "run", tiny_run())
    np.savez(tmp_path / "images.npz", images=np.zeros((9, 8, 8, 3), np.uint8), labels=np.arange(9) % 3)
    allow, data = ["--import", "tiny", "--import", "own_protocol"], ["--data", str(tmp_path / "images.npz")]
    words = [*allow, "evaluate", "own_protocol:Own", str(tmp_path / "run"), *data]
    assert main([*words, "--score", "4", "--out", str(tmp_path / "result.json")]) == 0
    capsys.readouterr()
    assert main([*allow, "compare", str(tmp_path / "run"), "--protocols", str(tmp_path / "result.json"), *data]) == 0
    assert "own v1 score=4, top-1" in capsys.readouterr().out
    assert main([*words, "--score", "0"]) == 1
    assert "own_protocol.py, line 13, which --import named" in capsys.readouterr().err
    assert main([*allow, "evaluate", "own_protocol:Needs", str(tmp_path / "run"), *data]) == 2
    assert "own_protocol:Needs: give score a default" in capsys.readouterr().err
