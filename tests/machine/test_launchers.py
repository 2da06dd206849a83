"""What srun and mpirun started is described as torchrun would; wrong numbers of processes are refused."""

import os

import pytest

from vantage.errors import UserError
from vantage.machine import launchers

OPEN_MPI, INTEL = launchers._MPI
SRUN = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "6",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "2",
    "SLURM_JOB_ID": "1200",
    "SLURM_STEP_ID": "3",
    "SLURM_STEP_TASKS_PER_NODE": "2(x3)",
    "SLURM_STEP_NODELIST": "green[07-09]",
}


@pytest.fixture(autouse=True)
def no_launcher(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that started these tests is taken for a launcher; what a test sets is taken back."""
    monkeypatch.setattr(os, "environ", {})


def test_srun_is_described_as_torchrun() -> None:
    os.environ.update(SRUN)
    assert not launchers.is_one_of_several()
    launchers.describe_as_torchrun()
    assert launchers.is_one_of_several() and launchers.launcher() == "srun"
    assert launchers.launched_shape() == (2, 3) and launchers.local_processes() == 2
    expected = {"RANK": "5", "LOCAL_RANK": "1", "GROUP_RANK": "2", "MASTER_ADDR": "green07", "MASTER_PORT": "16203"}
    assert expected.items() <= os.environ.items()
    launchers.check_machines(3)
    launchers.check_processes(2, 3)
    with pytest.raises(UserError, match="6 processes were started, but the run has 1 device.* under srun"):
        launchers.check_processes(1, 1)


@pytest.mark.parametrize(
    ("names", "count", "local", "refused"),
    [(OPEN_MPI, 2, 2, ""), (INTEL, 2, 2, ""), (OPEN_MPI, 4, 2, "on 2 machines, and nothing says where they meet")],
)
def test_mpirun_is_described_as_torchrun(names: tuple[str, ...], count: int, local: int, refused: str) -> None:
    os.environ.update(zip(names, map(str, (1, count, 1, local)), strict=True))
    if refused:
        with pytest.raises(UserError, match=refused):
            launchers.describe_as_torchrun()
        os.environ["MASTER_ADDR"] = "green07"
    launchers.describe_as_torchrun()
    assert launchers.launcher() == "mpirun" and launchers.launched_shape() == (local, count // local)
    assert os.environ["MASTER_ADDR"] == ("green07" if refused else "127.0.0.1")


@pytest.mark.parametrize(
    "variables",
    [
        {**SRUN, "SLURM_STEP_NUM_TASKS": "1", "SLURM_STEP_TASKS_PER_NODE": "1"},
        {"SLURM_JOB_ID": "1200", "SLURM_NTASKS": "4"},  # the batch script itself, which srun did not start
        {**SRUN, "RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},  # torchrun inside srun
        {**SRUN, "LOCAL_RANK": "1"},  # a process that Lightning started
        {"OMPI_COMM_WORLD_RANK": "zero"},
    ],
)
def test_others_stay_as_they_are(variables: dict[str, str]) -> None:
    os.environ.update(variables)
    launchers.describe_as_torchrun()
    assert {name for name in os.environ if not name.startswith("PYTEST")} == variables.keys()


def test_machines_need_the_same_number_of_processes() -> None:
    os.environ.update(SRUN | {"SLURM_STEP_TASKS_PER_NODE": "1(x2),4"})
    with pytest.raises(UserError, match="srun started 6 processes, 4 of them on this machine: start the same number"):
        launchers.describe_as_torchrun()


def test_several_machines_need_something_that_started_them(monkeypatch: pytest.MonkeyPatch) -> None:
    launchers.check_machines(1)
    with pytest.raises(UserError, match="2 machines are asked for.* torchrun --nnodes 2 on each"):
        launchers.check_machines(2)
    monkeypatch.setenv("MASTER_ADDR", "node0")
    launchers.check_machines(2)


def test_the_shape_of_what_was_started(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launchers.launched_shape() is None
    for name, value in {"LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "8", "RANK": "5"}.items():
        monkeypatch.setenv(name, value)
    assert launchers.launched_shape() == (4, 2)
    launchers.check_processes(4, 2)
    with pytest.raises(UserError, match=r"8 processes were started, but the run has 4 device\(s\) on 1 machine"):
        launchers.check_processes(4, 1)
    monkeypatch.setenv("RANK", "8")
    with pytest.raises(UserError, match="RANK is 8 and WORLD_SIZE 8"):
        launchers.check_processes(4, 2)
    monkeypatch.delenv("RANK")
    launchers.check_processes(4, 1)
    for name, value in {"RANK": "0", "WORLD_SIZE": "1"}.items():  # as in a managed container: Fabric starts the others
        monkeypatch.setenv(name, value)
    launchers.check_processes(4, 1)
    monkeypatch.delenv("WORLD_SIZE")
    assert launchers.launched_shape() is None
