"""A file system of a few pages in memory, and commands that write to it until it is full.

`SmallDisk` starts this file as a process in a new mount namespace, so that nobody else sees the file system and it
disappears with the process. For each command this process forks another one, which behaves like `vantage` but need not
import torch again.
"""

import atexit
import ctypes
import hashlib
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = os.sysconf("SC_PAGE_SIZE")
_SECONDS = 120.0
_PR_SET_CHILD_SUBREAPER = 36
IMPORTED = ("vantage.cli.program", "vantage.training.loop", "vantage.recipes", "vantage.evaluate", "tiny")
"""Modules imported in advance, so that no command has to import them."""
_WAYS = (("unshare", "--mount"), ("unshare", "--map-root-user", "--mount"))
"""Commands that create a mount namespace: as root, or as another user if the system allows it."""


class Room(NamedTuple):
    """Free space before a command begins."""

    pages: int = 16_384
    """Pages of the file system."""

    files: int = 16_384
    """Files and folders that can be made."""


ENOUGH = Room()


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    status: int
    """Its exit status."""

    out: str
    """Its standard output."""

    err: str
    """Its standard error."""

    room: Room
    """Free space after it."""


class SmallDisk:
    """A file system in memory at `root`, an empty folder. Skips the test if none can be mounted."""

    def __init__(self, root: Path, environment: Mapping[str, str]) -> None:
        self.root = root
        self._process = subprocess.Popen(
            [*_way(), sys.executable, __file__, str(root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **environment},
        )

    def close(self) -> None:
        """End the process, and the file system with it."""
        self._process.communicate()

    def run(
        self,
        words: str,
        room: Room = ENOUGH,
        out: str = "",
        cache: str = "",
        temporary: str = "",
        anew: bool = False,
    ) -> CommandResult:
        """Run `vantage` with these words in `root`, with this much room.

        `out` is a file in `root` for standard output, `cache` the folder of the cache, `temporary` the only folder for
        temporary files. `anew` starts a new interpreter, which commands with several processes need.
        """
        folders = {"cache": cache, "temporary": temporary}
        answer = self._ask(do="run", words=words.split(), room=[*room], out=out, **folders, anew=anew)
        return CommandResult(**{**answer, "room": Room(*answer["room"])})

    def files(self) -> dict[str, str]:
        """The digest of every file by its path from `root`."""
        return self._ask(do="files")

    def read(self, name: str) -> bytes:
        """The content of a file."""
        return bytes.fromhex(self._ask(do="read", name=name))

    def shell(self, line: str) -> None:
        """Run a line of shell in `root`, with room."""
        assert self._ask(do="shell", line=line) == 0, line

    def _ask(self, **question: Any) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the process of the small disk has ended"
        return json.loads(answer)


@cache
def _way() -> Sequence[str]:
    """The start of a command that runs a process in a new mount namespace."""
    for command in _WAYS:
        try:
            process = subprocess.run([*command, "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True)
        except FileNotFoundError:
            break
        if process.returncode == 0:
            return command
    pytest.skip("no file system can be mounted here, by root or in a namespace of one's own")


def _make_room(root: str, room: Room) -> None:
    """Resize the file system in memory so that this much is free."""
    usage = os.statvfs(root)
    pages, files = usage.f_blocks - usage.f_bfree + room.pages, usage.f_files - usage.f_ffree + room.files
    subprocess.run(["mount", "-o", f"remount,size={pages * PAGE},nr_inodes={files}", root], check=True)


def _run(root: str, words: list[str], room: Room, out: str, cache: str, temporary: str, anew: bool) -> dict[str, Any]:
    """Run a command in a separate process."""
    streams = [os.open(out, os.O_RDWR | os.O_CREAT | os.O_TRUNC) if out else os.memfd_create("out")]
    streams += [os.memfd_create("err")]
    modules_stream = os.memfd_create("modules")
    _make_room(root, room)
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, stream in enumerate(streams, 1):
            os.dup2(stream, number)
        if cache:
            os.environ["VANTAGE_CACHE"] = str(Path(cache).absolute())
        if temporary:
            _keep_temporary_files_in(Path(temporary).absolute())
        if anew:
            os.execv(sys.executable, [sys.executable, "-m", "vantage.cli", *words])
        from vantage.cli.program import main

        sys.argv[:] = ["vantage", *words]
        status = main()
        os.write(modules_stream, json.dumps([*sys.modules]).encode())
        _leave(status)
    status = _wait(child)
    out_text, err, modules = (
        os.pread(stream, os.fstat(stream).st_size, 0).decode() for stream in (*streams, modules_stream)
    )
    for stream in (*streams, modules_stream):
        os.close(stream)
    _import(json.loads(modules or "[]"))
    free = os.statvfs(root)
    _make_room(root, ENOUGH)
    return {
        "status": status,
        "out": out_text,
        "err": err,
        "room": [free.f_bfree, free.f_ffree],
    }


def _wait(child: int) -> int:
    """The exit status of a process, once it and all that it started have ended: each of them may have a message."""
    with suppress(PermissionError):  # it did so itself, and runs another program by now
        os.setpgid(child, child)
    end, status = time.monotonic() + _SECONDS, 0
    while True:
        try:
            process, code = os.waitpid(-child, os.WNOHANG)
        except ChildProcessError:
            return os.waitstatus_to_exitcode(status)
        if process == child:
            status = code
        elif not process:
            time.sleep(0.002)
        if time.monotonic() > end:
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)


def _keep_temporary_files_in(folder: Path) -> None:
    """Use only this folder. If it were full, Python would use /tmp, and then the working folder."""
    os.environ["TMPDIR"] = str(folder)
    tempfile.tempdir = None
    setattr(tempfile, "_candidate_tempdir_list", lambda: [str(folder)])  # noqa: B010


def _leave(status: int) -> None:
    """End as the interpreter does, but without deallocating a million objects, which takes longer than a command."""
    threading._shutdown()  # pyright: ignore[reportAttributeAccessIssue]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120
    os._exit(status)


def _import(modules: Sequence[str]) -> None:
    """Import here what a command has imported, so that the next one need not."""
    for module in modules:
        if module not in sys.modules:
            with suppress(Exception):  # names without a file
                importlib.import_module(module)


def _files(root: str) -> dict[str, str]:
    paths = [path for path in Path(root).rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _serve(root: str) -> None:
    """Answer questions, one per line, until the input ends."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # so that `_wait` can wait for what a command started
    os.chdir("/")
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ENOUGH.pages * PAGE}", "tmpfs", root], check=True)
    os.chdir(root)
    Path("held").write_text("one page is used, since a size of 0 would mean no limit")
    for module in IMPORTED:
        importlib.import_module(module)

    for line in sys.stdin:
        match json.loads(line):
            case {"do": "run", **run}:
                answer: Any = _run(root, **{**run, "room": Room(*run["room"])})
            case {"do": "files"}:
                answer = _files(root)
            case {"do": "read", "name": name}:
                answer = Path(name).read_bytes().hex()
            case {"do": "shell", "line": words}:
                answer = subprocess.run(words, shell=True).returncode
            case other:
                raise AssertionError(other)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve(sys.argv[1])
