"""Commands in processes of their own: alone, by torchrun, or as srun and mpirun start them."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from tiny import images, saved_run, tiny_run

from vantage.encoders import Convolutions, Encoder, LinearHead, Shared

COMMAND = ("-m", "vantage.cli")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *COMMAND)


def write_run_and_images(folder: Path) -> tuple[str, str]:
    """The folder of a run, and a file of labeled images, both new."""
    saved_run(folder / "run", tiny_run(Shared(Encoder(Convolutions(widths=(4, 8)), LinearHead(8)))))
    source = images(60, 0)
    pixels = np.stack([source.image(number).permute(1, 2, 0).numpy() for number in range(60)])
    np.savez(folder / "images.npz", images=pixels, labels=np.arange(60) % 3)
    return str(folder / "run"), str(folder / "images.npz")


def output_lines(start: tuple[str, ...], *words: str, cache: Path) -> list[str]:
    """What a command prints; it must succeed."""
    environment = {**os.environ, "VANTAGE_CACHE": str(cache)}
    process = subprocess.run([sys.executable, *start, *words], env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout.splitlines()


def started(launcher: str, folder: Path, *commands: list[str]) -> list[subprocess.CompletedProcess[str]]:
    """The commands, as srun or mpirun starts them on one machine: one process each."""

    def start(rank: int) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **_variables(launcher, rank, len(commands))}
        environment["VANTAGE_CACHE"] = str(folder / "cache")
        command = [sys.executable, *COMMAND, *commands[rank]]
        return subprocess.run(command, env=environment, capture_output=True, text=True)

    with ThreadPoolExecutor(len(commands)) as processes:
        return list(processes.map(start, range(len(commands))))


def _variables(launcher: str, rank: int, count: int) -> dict[str, str]:
    if launcher == "mpirun":
        names, values = ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE"), (rank, count, rank, count)
        return {f"OMPI_COMM_WORLD_{name}": str(value) for name, value in zip(names, values, strict=True)}
    return {
        "SLURM_PROCID": str(rank),
        "SLURM_LOCALID": str(rank),
        "SLURM_STEP_NUM_TASKS": str(count),
        "SLURM_STEP_TASKS_PER_NODE": str(count),
        "SLURM_STEP_NODELIST": "127.0.0.1",
        "SLURM_NODEID": "0",
        "SLURM_JOB_ID": str(os.getpid()),
        "SLURM_STEP_ID": "0",
    }
