"""A path where results cannot be written is reported in a line with status 2: at once if possible, else at the end."""

import errno
import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny import images, saved_run, tiny_run

from vantage.cli import main

COMMANDS = {
    "evaluate knn RUN --data DATA --k 3": "result.json",
    "evaluate segmentation RUN --data DATA#DATA": "result.json",
    "evaluate detection RUN --data DATA": "result.json",
    "evaluate transfer RUN --sets a=DATA --by knn --set k=3": "table.md",
    "evaluate retrieval RUN --data DATA --k 3 --rows 2": "picture.png",
    "compare RUN --data DATA --protocols nearest-neighbor": "table.tex",
    "views show simclr --data DATA --images 2 --size 32": "picture.png",
    "shots SHOTS": "picture.svg",
    "report RUN --data DATA --images 10": "report.html",
}
"""Verbs and what they write."""
WORKING = [words for words in COMMANDS if "segmentation" not in words and "detection" not in words]


@pytest.fixture(scope="module")
def paths(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("places")
    saved_run(folder / "run", tiny_run())
    source = images(15, 0, 3)
    pixels = torch.stack([source.image(number) for number in range(15)]).permute(0, 2, 3, 1).numpy()
    np.savez(folder / "images.npz", images=pixels, labels=np.arange(15) % 3)
    outcome = {"measures": {"mAP": 20.0}, "details": {"shots": {"1": [10.0, 30.0]}}}
    record = {"protocol": "lowshot", "version": 1, "outcomes": {"a": outcome}}
    (folder / "lowshot.json").write_text(json.dumps(record))
    return {"RUN": str(folder / "run"), "DATA": str(folder / "images.npz"), "SHOTS": str(folder / "lowshot.json")}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VANTAGE_CACHE", str(tmp_path / "cache"))


def message_of(words: str, paths: dict[str, str], out: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The mistake that a call ends with."""
    for name, path in paths.items():
        words = words.replace(name, path)
    assert main(["--import", "tiny", *words.split(), "--out", str(out), "--quiet"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("vantage: ") and message.count("\n") == 1, message
    return message


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words.split()[:2]))
def test_a_place_that_cannot_be_is_an_error_at_once(
    words: str,
    paths: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("vantage.training.images.open_images", None)  # no image is looked at
    name = COMMANDS[words]
    (tmp_path / "file").touch()
    assert f"cannot be created, since {tmp_path}/file is a file: choose another name" in message_of(
        words, paths, tmp_path / "file" / "within" / name, capsys
    )
    (tmp_path / name).mkdir()
    assert f"--out {tmp_path / name} is a folder: name a file" in message_of(words, paths, tmp_path / name, capsys)
    (tmp_path / name).rmdir()
    monkeypatch.setattr(os, "access", lambda path, mode: not (Path(path) == tmp_path and mode & os.W_OK))
    assert f"you have no permission to write to the folder {tmp_path};" in message_of(
        words, paths, tmp_path / name, capsys
    )
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("words", WORKING, ids=lambda words: " ".join(words.split()[:2]))
def test_a_full_disk_is_an_error_and_leaves_the_old_file(
    words: str,
    paths: dict[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / COMMANDS[words]
    out.write_text("the old one")
    flush = os.fsync

    def full(handle: int) -> None:
        """No room for what lies beside the old file; elsewhere there is."""
        if os.path.dirname(os.readlink(f"/proc/self/fd/{handle}")) == str(tmp_path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        flush(handle)

    monkeypatch.setattr(os, "fsync", full)
    assert (
        "could not be written to" in (message := message_of(words, paths, out, capsys)) and "No space left" in message
    )
    assert out.read_text() == "the old one" and {path.name for path in tmp_path.iterdir()} <= {out.name, "cache"}


def test_an_export_to_a_full_disk_leaves_nothing(
    paths: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = message_of("export RUN --to torch", paths, tmp_path / "backbone.pt2", capsys)
    assert "could not be written to" in message and "No space left" in message
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}


def test_results_that_cannot_be_kept_with_the_run_are_an_error_at_once(
    paths: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Path(paths["RUN"])
    words = ["--import", "tiny", "evaluate", "knn", str(run), "--data", paths["DATA"], "--k", "3", "--quiet"]
    monkeypatch.setattr("vantage.training.images.open_images", None)
    monkeypatch.setattr(os, "access", lambda path, mode: run not in (Path(path), Path(path).parent))
    assert main(words) == 2
    message = capsys.readouterr().err
    assert f"results are kept in {run / 'evaluations'}: you have no permission to write" in message
    assert "name a file with --out" in message


@pytest.mark.parametrize(
    "words",
    [
        "pretrain simclr --data DATA",
        "views learn unsupervised --data DATA",
        "analyse similarity RUN --data DATA",
        "analyse optimal-toy",
        "analyse views crop --data DATA",
        "reproduce infomin-table-4 --digits DATA --test-digits DATA --backgrounds DATA --test-backgrounds DATA",
    ],
)
def test_a_folder_that_cannot_be_made_is_an_error_at_once(
    words: str, paths: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("mine")
    message = message_of(words, paths, tmp_path / "file" / "below", capsys)
    assert f"--out {tmp_path}/file/below cannot be created, since {tmp_path}/file is a file: name a folder" in message
