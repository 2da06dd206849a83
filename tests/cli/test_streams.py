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


@pytest.mark.parametrize("verb", ["recipes", "evaluate --help"])
def test_a_reader_that_stops_reading_is_no_mistake(verb: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "vantage.cli", *verb.split()]
    process = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, env=os.environ | SOURCES)
    os.close(writer)
    assert process.returncode == 141
    assert "Error" not in process.stderr and "bug" not in process.stderr
