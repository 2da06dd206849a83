"""SIGTERM ends a command as Ctrl-C does: what it has not finished is removed."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from vantage.cli import main, program
from vantage.machine.termination import interrupted_by_sigterm
from vantage.storage.files import atomic_file, temporary_folder


def test_sigterm_cleans_up_as_ctrl_c_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders: list[Path] = []

    def work(words: list[str]) -> int:
        with temporary_folder() as folder, atomic_file(tmp_path / "table.md") as file:
            folders.append(folder)
            file.write(b"half")
            signal.raise_signal(signal.SIGTERM)
        return 0

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        monkeypatch.setattr(program, "_run", work)
        assert main(["recipes"]) == 130
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "vantage: interrupted\n"
    assert not list(tmp_path.iterdir()) and not folders[0].exists()


def test_an_ignored_or_handled_sigterm_stays_as_it_is() -> None:
    before = signal.getsignal(signal.SIGTERM)
    try:
        for handler in (signal.SIG_IGN, lambda *_: None):
            signal.signal(signal.SIGTERM, handler)
            with interrupted_by_sigterm():
                assert signal.getsignal(signal.SIGTERM) is handler
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_do_without() -> None:
    ran: list[bool] = []

    def work() -> None:
        with interrupted_by_sigterm():
            ran.append(True)

    (thread := threading.Thread(target=work)).start()
    thread.join()
    assert ran == [True]


ORDERED = """
import os, time
from vantage.machine.termination import interrupted_by_sigterm
from vantage.studies.lab.making import workload

def work(order, problems, jobs):
    print(os.getpid(), flush=True)
    time.sleep(600)

workload._worker = work
if __name__ == "__main__":
    with interrupted_by_sigterm():
        workload.make_all(None, 2)
"""


@pytest.mark.slow
def test_processes_of_a_lab_end_with_the_first_one(tmp_path: Path) -> None:
    """`kill`, Slurm and others send SIGTERM to the first process alone."""
    (tmp_path / "ordered.py").write_text(ORDERED)
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    words, environment, pipe = [sys.executable, "ordered.py"], {**os.environ, "PYTHONPATH": path}, subprocess.PIPE
    with subprocess.Popen(words, cwd=tmp_path, env=environment, stdout=pipe, stderr=pipe) as first:
        assert first.stdout is not None
        assert all([first.stdout.readline().strip().isdigit() for _ in range(2)])
        first.send_signal(signal.SIGTERM)
        out, err = first.communicate(timeout=60)  # ends once no process holds the pipes
    assert out == b"" and err.rstrip().endswith(b"KeyboardInterrupt"), err
