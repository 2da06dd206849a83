"""What a killed process has not finished is written over or removed by the next one, and by nobody else."""

import errno
import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from vantage.storage.files import atomic_file, temporary_folder, write_text

KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
from vantage.storage.files import atomic_file, temporary_folder
with temporary_folder() as folder, atomic_file(Path(sys.argv[1])) as file:
    (folder / "tensors").write_bytes(b"large")
    file.write(b"half of" * 100_000)
    os.kill(os.getpid(), signal.SIGKILL)
"""
LONG_AGO = (1e9, 1e9)


def kill_a_writer(path: Path) -> None:
    """End a process by SIGKILL while it writes a file and has a temporary folder."""
    process = subprocess.run([sys.executable, "-c", KILLED_WHILE_WRITING, str(path)], timeout=60)
    assert process.returncode == -signal.SIGKILL


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for temporary files, of this process and of others."""
    (folder := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def test_the_next_writer_writes_over_what_a_killed_one_left(tmp_path: Path, temporary: Path) -> None:
    path = tmp_path / "features.parquet"
    kill_a_writer(path)
    kill_a_writer(path)
    assert not path.exists() and len([each for each in tmp_path.iterdir() if each.is_file()]) == 1
    write_text(path, "whole")
    assert path.read_text() == "whole" and sorted(tmp_path.iterdir()) == [path, temporary]


def test_two_writers_at_once_do_not_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "table.md"
    with atomic_file(path) as first:
        first.write(b"first, ")
        with atomic_file(path) as second:
            second.write(b"second")
        assert path.read_text() == "second"
        first.write(b"longer")
    assert path.read_text() == "first, longer" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("kind", ["link", "second name", "folder", "pipe"])
def test_anything_else_of_that_name_is_left_alone(kind: str, tmp_path: Path) -> None:
    path, usual, other = (tmp_path / name for name in ("table.md", "table.md.unfinished", "mine"))
    other.write_text("mine")
    if kind == "link":
        usual.symlink_to(other)
    elif kind == "second name":
        os.link(other, usual)
    elif kind == "folder":
        usual.mkdir()
    else:
        os.mkfifo(usual)
    write_text(path, "whole")
    assert path.read_text() == "whole" and other.read_text() == "mine"
    assert sorted(tmp_path.iterdir()) == sorted([path, usual, other])


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, temporary: Path) -> None:
    kill_a_writer(tmp_path / "table.md")
    (abandoned,) = temporary.iterdir()
    assert list(abandoned.iterdir())
    with temporary_folder():
        assert abandoned.exists(), "a process may have just made it"
    os.utime(abandoned, LONG_AGO)
    with temporary_folder() as folder:
        assert list(temporary.iterdir()) == [folder]
    assert not list(temporary.iterdir())


def test_temporary_folders_in_use_and_folders_of_the_user_stay(temporary: Path) -> None:
    for name in ("vantage-temporary-photos", "vantage-first", "vantage-temporary-a1b2c3d4e5"):
        (temporary / name).mkdir()
        os.utime(temporary / name, LONG_AGO)
    (temporary / "vantage-temporary-abcd1234").symlink_to(temporary / "vantage-first")
    mine = set(temporary.iterdir())
    with temporary_folder() as folder:
        os.utime(folder, LONG_AGO)
        with temporary_folder():
            assert folder.exists()
    assert set(temporary.iterdir()) == mine


def test_without_locks_and_without_owners_nothing_is_left_beside_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems have no locks, and some give every new file to somebody else."""

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    path, user = tmp_path / "table.md", os.geteuid()
    for name, other in ((fcntl, "flock"), no_locks), ((os, "geteuid"), lambda: user + 1):
        with monkeypatch.context() as patch:
            patch.setattr(*name, other)
            with atomic_file(path) as first:
                first.write(b"first")
                write_text(path, "second")
                assert path.read_text() == "second"
            assert path.read_text() == "first" and list(tmp_path.iterdir()) == [path]


def test_a_folder_for_temporary_files_need_not_be_readable(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "iterdir", refused)
    with temporary_folder() as folder:
        assert folder.parent == temporary
