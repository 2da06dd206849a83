"""Standard error on a full disk: notes are lost, and nothing else."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import Path

import pytest
from tiny import kept_run, tiny_run

from vantage.cli import main
from vantage.cli.printing.streams import discard, usable_streams

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")


@contextmanager
def full_disk() -> Iterator[None]:
    """Standard error is a disk without room."""
    with open("/dev/full", "w", buffering=1) as stream, redirect_stderr(stream):
        yield


def test_a_mistake_keeps_its_status() -> None:
    with full_disk():
        assert main(["pretran"]) == 2


def test_what_is_written_does_not_depend_on_notes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept_run(tmp_path / "run", tiny_run())
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
