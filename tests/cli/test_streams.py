"""Streams that take nothing: notes are lost on a full disk, and a reader may stop reading."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest
from tiny import saved_run, tiny_run

import vantage
from vantage.cli import main
from vantage.cli.printing.streams import discard, usable_streams

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")

SOURCES = {"PYTHONPATH": str(Path(vantage.__file__).parents[1])}


@contextmanager
def full_disk() -> Iterator[None]:
    """Standard error is a disk without room."""
    with open("/dev/full", "w", buffering=1) as stream, redirect_stderr(stream):
        yield


def test_a_mistake_keeps_its_status() -> None:
    with full_disk():
        assert main(["pretran"]) == 2


def test_what_is_written_does_not_depend_on_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved_run(tmp_path / "run", tiny_run())
    words = f"--import tiny embed {tmp_path}/run --data photographs:test --out {tmp_path}/new/folder/rows.npy"
    with full_disk():
        assert main(words.split()) == 0
    assert (tmp_path / "new" / "folder" / "rows.npy").exists()
    assert capsys.readouterr().out.endswith("rows.npy\n")


def test_another_failure_is_not_hidden() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream:
        with redirect_stderr(stream), usable_streams(), pytest.raises(BrokenPipeError):
            print("a note", file=sys.stderr)
        discard(stream)


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["recipes", "evaluate --help"])
def test_a_reader_that_stops_reading_is_no_mistake(verb: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "vantage.cli", *verb.split()]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=os.environ | SOURCES)
    os.close(writer)
    assert process.returncode == 141
    assert "Error" not in process.stderr and "bug" not in process.stderr


@pytest.mark.slow
@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_stream_that_is_closed_is_no_mistake(closed: int, tmp_path: Path) -> None:
    """And no file that is written takes its place."""
    saved_run(tmp_path / "run", tiny_run())
    words = f"--import tiny embed {tmp_path}/run --data photographs:test --out {tmp_path}/rows.npy"
    path = os.pathsep.join((SOURCES["PYTHONPATH"], str(Path(tiny_run.__code__.co_filename).parent)))
    command = f'exec "$0" -m vantage.cli {words} {closed}>&-'
    process = subprocess.run(["sh", "-c", command, sys.executable], env=os.environ | {"PYTHONPATH": path})
    assert process.returncode == 0
    assert (tmp_path / "rows.npy").read_bytes().startswith(b"\x93NUMPY")


def test_a_current_folder_that_was_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saved_run(tmp_path / "run", tiny_run())
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    words = f"--import tiny embed {tmp_path}/run --data photographs:test --out rows.npy"
    assert main(words.split()) == 2
    assert capsys.readouterr().err == "vantage: the current folder was removed: change to one that exists\n"


_NAMES = r"""
import os, sys
from pathlib import Path
from vantage.cli import main
from vantage.data.sources.listing import list_images

root = Path(sys.argv[1])
names = list_images(root / "images", root / "cache").names
assert [os.fsencode(name) for name in names] == ["\u00e9.png".encode()], names
if sys.flags.utf8_mode == 0:
    (root / "list.txt").write_bytes("images/\u00e9.png 0\n".encode())
    sys.exit(main(["pretrain", "moco_v2", "--data", f"{root}/list.txt", "--out", f"{root}/run"]))
"""


@pytest.mark.slow
def test_names_that_are_not_those_of_the_locale(tmp_path: Path) -> None:
    """A listing is made anew for another encoding of names, and names that it lacks are an error in one line."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "é.png").write_bytes(b"")
    for utf8, status in (("1", 0), ("0", 2)):
        environment = os.environ | SOURCES | {"PYTHONUTF8": utf8, "LC_ALL": "C"}
        command = [sys.executable, "-c", _NAMES, str(tmp_path)]
        process = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert process.returncode == status, process.stderr
    assert process.stderr.endswith("encoded as ascii here, and a name has characters that it lacks: set PYTHONUTF8=1\n")
