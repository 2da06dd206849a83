"""Vantage starts the processes of several devices and counts them, in a Slurm job of one task too; none outlives the
first one before they have met."""

import atexit
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch.distributed as dist
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment

import vantage
from vantage import processes
from vantage.errors import UserError
from vantage.training.computing import launch
from vantage.training.run import Hardware


@pytest.fixture(autouse=True)
def batch_script(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a batch script of one task."""
    for name in ("RANK", "LOCAL_RANK", "NODE_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.setenv(name, "0")  # so that it is taken back
        monkeypatch.delenv(name)
    for name in ("NTASKS", "PROCID", "LOCALID", "NODEID"):
        monkeypatch.setenv(f"SLURM_{name}", str(int(name == "NTASKS")))
    monkeypatch.setenv("SLURM_JOB_ID", "1200")
    monkeypatch.setenv("SLURM_JOB_NAME", "train")


def test_this_process_starts_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(launch._environment(), LightningEnvironment)
    for name, value in {"LOCAL_WORLD_SIZE": "1", "WORLD_SIZE": "2"}.items():  # srun, described as torchrun
        monkeypatch.setenv(name, value)
    assert launch._environment() is None
    monkeypatch.delenv("LOCAL_WORLD_SIZE")
    monkeypatch.delenv("SLURM_NTASKS")
    assert launch._environment() is None


def test_fewer_processes_than_devices_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """They leave the group however they end, here by this error."""
    monkeypatch.setattr(launch, "_environment", SLURMEnvironment)
    at_exit, register = list[object](), atexit.register
    monkeypatch.setattr(atexit, "register", lambda one, *_: (at_exit.append(one), register(one, *_))[1])
    try:
        with pytest.raises(UserError, match=r"2 device\(s\) on 1 machine\(s\) were asked for, but 1 process"):
            launch.open_fabric(Hardware("cpu", devices=2))
        assert processes.leave in at_exit, "while Python ends, gloo's threads would at times abort the process"
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


CONSOLE = """
from vantage.errors import UserError
from vantage.training.computing.launch import open_fabric
from vantage.training.run import Hardware
try:
    open_fabric(Hardware("cpu", devices=2))
except UserError as problem:
    print(problem)
"""


@pytest.mark.slow
def test_a_console_cannot_start_several_processes(tmp_path: Path) -> None:
    """It was killed by SIGKILL, with all that a notebook held, when the others found no script to run."""
    run = subprocess.run([sys.executable], input=CONSOLE, cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("a console or a notebook cannot start 2 processes, since each runs the whole script")


WAITING = """
import sys, time
from vantage.training.computing.launch import _ending_with_first
with _ending_with_first():
    time.sleep(float(sys.argv[1]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("orphan", [False, True])
def test_a_process_that_waits_for_the_others_ends_if_the_first_has_died(orphan: bool) -> None:
    """It looks once a second: three times while the first lives."""
    first, seconds, status = (1, "600", 143) if orphan else (os.getpid(), "3.5", 0)
    path = {"PYTHONPATH": str(Path(vantage.__file__).parents[1]), launch._FIRST: str(first)}
    process = subprocess.run([sys.executable, "-c", WAITING, seconds], env={**os.environ, **path}, timeout=500)
    assert process.returncode == status


def test_the_processes_that_are_started_know_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(launch._FIRST, raising=False)
    with launch._ending_with_first():
        assert os.environ[launch._FIRST] == str(os.getpid())
    assert launch._FIRST not in os.environ
