"""Files appear whole or not at all, are readable as plainly opened ones are, and a full disk is reported in a line."""

import errno
import os
import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from vantage.errors import UserError
from vantage.storage.files import atomic_file, flush, remove_on_failure, result_file, write_json, write_result


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o002])
def test_the_mode_is_that_of_a_plainly_opened_file(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "plain").open("w").close()
        with atomic_file(tmp_path / "whole") as file:
            file.write(b"x")
        write_result(tmp_path / "result", "x", "the result")
        write_json(tmp_path / "record", 1)
    finally:
        os.umask(before)
    modes = {name: stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "whole", "result", "record")}
    assert set(modes.values()) == {0o666 & ~umask}, modes


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "table.md"
    write_result(path, "old", "the table")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserError, match=rf"the table could not be written to {path}: No space left.*Free some space"):
        write_result(path, "new", "the table")
    with pytest.raises(KeyboardInterrupt), result_file(path, "the table") as file:
        file.write(b"half of")
        raise KeyboardInterrupt
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_what_is_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=r"Is a directory\. Choose another name"):
        write_result(tmp_path / "folder", "x", "the table")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UserError, match="Choose another name"):
        write_result(tmp_path / "file" / "below", "x", "the table")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_link_stays_a_link_and_a_pipe_a_pipe(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "link.md").symlink_to(tmp_path / "there" / "table.md")
    write_result(tmp_path / "link.md", "x", "the table")
    assert (tmp_path / "link.md").is_symlink() and (tmp_path / "there" / "table.md").read_text() == "x"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_result(tmp_path / "pipe", "through", "the table")
        assert os.read(reader, 100) == b"through"
    finally:
        os.close(reader)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    write_result(Path(os.devnull), "x", "the table")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_names_in_a_folder_count_as_safe_where_a_folder_cannot_be_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "tensors").write_text("")
    for number, allowed in ((errno.EINVAL, True), (errno.ENOSPC, False)):

        def refused(_: int, number: int = number) -> None:
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(os, "fsync", refused)
        for path, passes in ((tmp_path, allowed), (file, False)):
            with nullcontext() if passes else pytest.raises(OSError, match=os.strerror(number)):
                flush(path)


@pytest.mark.parametrize("is_new", [True, False])
def test_a_failure_removes_only_what_has_the_names_that_were_written(is_new: bool, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    kept = {"notes.txt", "linked", *(() if is_new else ("before.json",))}
    if not is_new:
        folder.mkdir()
        (folder / "before.json").write_text("")
    with pytest.raises(KeyboardInterrupt), remove_on_failure(folder, names=("*.json", "events", "to*")):
        folder.mkdir(exist_ok=True)
        (folder / "events").mkdir()
        (folder / "to-linked").symlink_to(folder / "linked")
        (folder / "linked").mkdir()
        for name in ("settings.json", "events/first", "notes.txt", "linked/mine"):
            (folder / name).write_text("")
        raise KeyboardInterrupt
    assert {path.name for path in folder.iterdir()} == kept and (folder / "linked" / "mine").exists()
