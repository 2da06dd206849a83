"""Runs of a sweep whose folders are removed once their rows are written, whenever the process is killed."""

import shutil
from pathlib import Path

__all__ = ["mark_to_discard", "remove_marked", "tidy_marked"]


def mark_to_discard(run_folder: Path) -> None:
    """Rename the folder of a run that is measured, before its row is written: whoever is killed between the row and the
    removal leaves a name that tells it from runs that are to stay. Raises `OSError`."""
    run_folder.rename(_marked(run_folder))


def remove_marked(run_folder: Path) -> None:
    """Remove the marked folder of a run, if there is one. Raises `OSError`."""
    if (marked := _marked(run_folder)).is_dir():
        shutil.rmtree(marked)


def tidy_marked(run_folder: Path, has_row: bool) -> None:
    """Remove what a killed process left of a run that was to be removed, or give it its name back if its row is missing
    and it has to be measured again. Raises `OSError`."""
    if has_row:
        remove_marked(run_folder)
    elif _marked(run_folder).is_dir() and not run_folder.exists():
        _marked(run_folder).rename(run_folder)


def _marked(run_folder: Path) -> Path:
    return run_folder.with_name(f".discarded-{run_folder.name}")
