"""The verb `resume`: a run goes on where it stopped."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from vantage.cli.arguments import Command, Repeated, Word, read
from vantage.cli.console import Console
from vantage.cli.options import RunFolder
from vantage.cli.planning import replaced_in
from vantage.cli.pretrain import ended
from vantage.errors import UserError

__all__ = ["resume"]


@dataclass(frozen=True)
class Resuming(RunFolder):
    """The options of `resume`."""

    data: Annotated[str, Word("PATH")] = ""
    """Where the images are now, if they have moved."""

    devices: int | None = None
    """Devices of this machine to train on."""

    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] | None = None
    """Arithmetic: bf16-mixed, 32-true, 16-mixed or 64-true."""

    num_workers: int | None = None
    """Processes that decode images, for sets too large for memory."""

    on_bad_image: Literal["skip", "stop"] | None = None
    """Leave unreadable images out (up to 1 %), or stop at the first."""

    set: Repeated = ()
    """Any field of hardware, monitoring or data, such as --set monitoring.log_every=1. May be repeated."""


def resume(words: list[str], console: Console) -> int:
    """Continue a run where it stopped: vantage resume RUN [--devices 2].

    What the run computes on, what it logs and where its images are may be changed; it keeps all other settings.
    """
    from vantage.composition.assignments import read_assignments
    from vantage.progress import progress_for
    from vantage.training import loop, settings
    from vantage.training.run import refuse_conflicts

    command = Command("resume", resume.__doc__ or "", partial(_settable, words))
    (options,) = read(command, words, Resuming)
    stored = settings.read(options.folder)
    plain = {
        "data.path": options.data or None,
        "data.num_workers": options.num_workers,
        "data.on_bad_image": options.on_bad_image,
        "hardware.devices": options.devices,
        "hardware.precision": options.precision,
    }
    written = [f"{path}={value!r}" for path, value in plain.items() if value is not None]
    run = replaced_in(stored, read_assignments(stored, (*options.set, *written), name="the run"))
    refuse_conflicts(stored, run)
    path = run.data.path
    moved = ":" not in path and not any(Path(each).exists() for each in (path, path.partition("#")[0]))
    if moved and path == stored.data.path:
        raise UserError(f"the images of the run are not at {path}: name where they are with --data PATH")
    return ended(loop.resume(options.folder, run, progress_for(console.silent)), console)


def _settable(words: list[str]) -> list[str]:
    from vantage.composition.fields import settings_in
    from vantage.training import settings

    try:
        return [setting.path for setting in settings_in(settings.read(Path(next(iter(words), ""))))]
    except UserError:
        return []
