"""The verb `resume`: continue a run where it stopped."""

import shlex
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from vantage.cli.pretrain import report_end
from vantage.cli.printing.console import Console
from vantage.cli.reading.arguments import Command, Repeated, Word, read
from vantage.cli.reading.images import absolute, exists_on_disk, from_any_folder
from vantage.cli.reading.options import (
    DeviceOptions,
    LoadingOptions,
    RunFolder,
    as_started,
    assignments,
    check_devices,
)
from vantage.composition.assignments import read_assignments
from vantage.composition.fields import replace_at, settings_in
from vantage.errors import UserError

__all__ = ["resume"]


@dataclass(frozen=True)
class ResumeOptions(RunFolder):
    """The options of `resume`."""

    data: Annotated[str, Word("PATH")] = ""
    """The new location of the images, if they have moved."""

    set: Repeated = ()
    """Any field of hardware, monitoring or data, such as --set monitoring.log_every=1. May be repeated."""


def resume(words: list[str], console: Console) -> int:
    """Continue a run where it stopped: vantage resume RUN [--devices 2].

    You may change hardware, monitoring and data; all other settings stay as they are.
    """
    command = Command("resume", resume.__doc__ or "", partial(_settable, words))
    options, devices, loading = read(command, words, ResumeOptions, DeviceOptions, LoadingOptions)
    from vantage.training import loop
    from vantage.training.folder import settings
    from vantage.training.folder.same_run import refuse_conflicts

    previous = settings.read(options.folder)
    changes = [*options.set, *assignments({"data.path": absolute(options.data) or None})]
    devices = as_started(devices, options.set)
    changes += [*assignments(vars(loading), "data."), *assignments(vars(devices), "hardware.")]
    run = replace_at(previous, read_assignments(previous, changes, name="the run"))
    refuse_conflicts(previous, run)
    check_devices(run.hardware)
    path = run.data.path
    is_missing = ":" not in path and not (exists_on_disk(path) or exists_on_disk(path.partition("#")[0]))
    if is_missing and path == previous.data.path:
        raise UserError(f"the images of the run are not at {path}: give their new location with --data PATH")
    outcome = loop.resume(options.folder, run, console.progress())
    return report_end(outcome, run, console, _words_of(options.folder), words)


def _words_of(folder: Path) -> list[str]:
    """What followed `pretrain` in the command that started a run; of a command that is not written for a shell, as in
    records of 0.1, only the recipe that it named first, if any."""
    from vantage.storage.provenance import read_provenance

    first = next(iter(read_provenance(folder)), {})
    _, _, text = str(first.get("command", "")).partition(" pretrain ")
    with suppress(ValueError):  # a quotation mark that is not closed
        words = shlex.split(text)
        if shlex.join(words) == text:
            return from_any_folder(words, first.get("folder", ""))
    return [name for name in text.split()[:1] if not name.startswith("-")]


def _settable(words: list[str]) -> list[str]:
    from vantage.training.folder import settings

    try:
        return [setting.path for setting in settings_in(settings.read(Path(next(iter(words), ""))))]
    except UserError:
        return []
