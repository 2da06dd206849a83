"""Runs that continue with a different number of processes each time, for `training/test_world_size.py`."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import ranks
import sharded_banks
import small_runs
import torch

from vantage import processes
from vantage.composition.codec import allowing
from vantage.progress import QuietProgress
from vantage.training.folder import settings
from vantage.training.loop import resume, train
from vantage.training.run import Hardware, Run
from vantage.views import Flow, RealNVP, Statistics, YDbDr, in_space
from vantage.views.colors.learned import LAST, write_learned

LEGS = ((1, 4), (2, 11), (4, 17), (1, 24))
"""Processes, and the step at which they stop: in the middle of an epoch, except for the last."""


def runs(folder: Path) -> dict[str, Run]:
    """Runs in float64 with a queue, banks with clusters (whole and sharded), a learned color space, and batches in two
    accumulated parts."""
    path = small_runs.write_images(folder / "images.npz")
    run_of_name = {name: small_runs.small_run(name, path, epochs=4) for name in ("moco_v2", "interclr", "pirl")}
    flow = Flow(RealNVP(4, 2), 3)
    torch.manual_seed(4)
    space = write_learned(folder / LAST, flow, flow.build(), YDbDr(), Statistics((0.1, -0.2, 0.3), (0.9, 1.1, 1.3)))
    color_run = small_runs.small_run("cmc", path, epochs=4)
    run_of_name["learned"] = replace(color_run, views=in_space(color_run.views, space))
    for name in ("interclr", "local_aggregation"):
        run_of_name[f"sharded-{name}"] = sharded_banks.with_sharded_bank(small_runs.small_run(name, path, epochs=4))
    for name in ("moco_v2", "simclr"):
        grouped = small_runs.in_groups(small_runs.small_run(name, path, epochs=4), 2)
        run_of_name[f"accumulated-{name}"] = replace(grouped, accumulate=2)
    return {name: replace(run, hardware=_hardware(1)) for name, run in run_of_name.items()}


def _hardware(count: int) -> Hardware:
    return Hardware("cpu", devices=count, precision="64-true")


class Stopping(QuietProgress):
    """Stops the run at a step."""

    def __init__(self, step: int) -> None:
        self.step = step

    def advance(self, completed: int, note: str = "", seconds_left: float | None = None) -> None:
        """Send SIGTERM when the step is reached."""
        if completed == self.step:
            os.kill(os.getpid(), signal.SIGTERM)


def leg(folder: Path) -> None:
    """Continue every run, on this process, to the step at which this number of processes stops."""
    count = processes.count()
    stop = int((folder / "stop").read_text())
    rank, many = str(processes.rank()), str(count)
    torchrun = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": "0", "WORLD_SIZE": many, "LOCAL_WORLD_SIZE": many}
    os.environ |= torchrun | {"TORCHELASTIC_RUN_ID": "test"}
    with allowing("tiny"):
        for settings_file in sorted(folder.glob("*/settings.json")):
            resume(
                settings_file.parent,
                replace(settings.read(settings_file.parent), hardware=_hardware(count)),
                Stopping(stop),
            )
    torch.save({}, folder / f"{processes.rank()}.pt")


def travel(folder: Path) -> None:
    """Run the first leg in this process, and the others on their numbers of processes."""
    for count, stop in LEGS:
        (folder / "stop").write_text(str(stop))
        if (count, stop) == LEGS[0]:
            for name, run in runs(folder).items():
                train(run, folder / name, Stopping(stop))
        else:
            (folder / "meeting").unlink(missing_ok=True)
            ranks.spawn(leg, folder, count)
