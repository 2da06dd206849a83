"""Are the run and its images the same: in all processes, and after a stop?"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from vantage import processes
from vantage.composition.codec import encode
from vantage.composition.fields import differences
from vantage.data import Source
from vantage.errors import UserError
from vantage.machine.launchers import launcher
from vantage.processes.sharing import same_on_all
from vantage.storage.cache import digest
from vantage.storage.provenance import first_images
from vantage.training.folder import settings
from vantage.training.run import Data, Hardware, Run

__all__ = [
    "check_same_command",
    "check_same_everywhere",
    "check_same_images",
    "check_same_run",
    "conflicts",
    "refuse_conflicts",
]


_DECIDES = ("data.shuffle_window", "data.resident_side")
"""Settings of the data that decide in which order images come, and which part of an image is seen."""


def check_same_everywhere(run: Run, data: dict[str, Any]) -> None:
    """Raises `UserError` unless all processes have the same settings and the same images: each would train on its own,
    and their gradients would be mixed."""
    order = Data(shuffle_window=run.data.shuffle_window)  # paths and threads may differ between machines
    for what, value in (("images", data), ("settings", encode(replace(run, data=order, hardware=Hardware())))):
        if not _same_on_all(value):
            raise UserError(f"the processes of this run do not have the same {what}: give all machines the same {what}")


def check_same_images(images: Source) -> None:
    """Raises `UserError` unless all processes have the same images: they share the work by number, and would give the
    images of one the features of another's."""
    if processes.count() > 1 and not _same_on_all({"fingerprint": images.fingerprint(), "images": len(images)}):
        raise UserError("the processes do not have the same images: give all machines the same images")


def check_same_command() -> None:
    """Raises `UserError` if srun or mpirun started processes with different commands: they were not meant to work
    together."""
    if launcher() and not _same_on_all(sys.argv[1:]):
        raise UserError(
            f"{launcher()} started different commands as one job, whose processes work together: start each by a job of"
            " its own, with one process"
        )


def _same_on_all(value: Any) -> bool:
    return same_on_all(int(digest(value)[:15], 16))


def check_same_run(run: Run, folder: Path, data: dict[str, Any], unseen: str = "") -> None:
    """Raises `UserError` unless a resumed run and its images are still the same. Every process checks, so that all of
    them stop. `unseen` says what is left out of the images although earlier versions trained on it."""
    before = settings.read(folder)
    refuse_conflicts(before, run)
    first = first_images(folder)
    if first is None or first == data:
        return
    for name in ("hold_out", "max_images"):
        old, new = getattr(before.data, name), getattr(run.data, name)
        if old != new:
            raise UserError(
                f"data.{name} is {old!r} in the run, {new!r} was asked for, so these are not its images: leave it as it"
                " was, or start a new run"
            )
    what_to_do = "give the same images again (--data PATH if they have moved, or `source` from Python)"
    if unseen:
        what_to_do = (
            f"they are without {unseen}, on which earlier versions trained. If the run began on those, continue it with"
            f" the version that began it, or start a new run (--init {folder} starts from its networks)"
        )
    raise UserError(
        f"the run in {folder} began on {first['images']:,} images, but the {data['images']:,} given now are not the"
        f" same: {what_to_do}"
    )


def refuse_conflicts(original: Run, run: Run) -> None:
    """Raises `UserError` naming the settings that differ, apart from those that a resumed run may change."""
    if words := conflicts(original, run, ("hardware.", "monitoring.", "data."), "in the run"):
        raise UserError(f"a resumed run keeps its settings: {words}. Start a new run to change them")


def conflicts(original: Any, now: Any, free: tuple[str, ...], place: str) -> str:
    """The settings that differ, in words, four at most. Those that begin as `free` says may differ, unless they decide
    what is seen."""
    changes = [
        change for change in differences(original, now) if not change[0].startswith(free) or change[0] in _DECIDES
    ]
    return "; ".join(f"{path} is {old!r} {place}, {new!r} was asked for" for path, old, new in changes[:4])
