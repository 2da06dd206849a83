"""Check the files and folders that `--out` names before any work is done."""

import os
from collections.abc import Sequence
from pathlib import Path

from vantage.errors import UserError

__all__ = ["check_file", "check_folder", "check_new_run", "result_file_or_none"]


def check_file(out: Path, endings: Sequence[str] = (), what: str = "", flag: str = "--out") -> Path:
    """Check that a file can be written, in a folder that may not exist yet. `what` describes its content, and `flag` is
    the option that names it.

    Raises `UserError` if `endings` are given and the file has another one, if its folder cannot be created or is not
    writable, and if it is a folder.
    """
    if endings and out.suffix not in endings:
        every = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        raise UserError(f"{flag} {out}: this file holds {what}; end the name with {every}")
    if os.path.isdir(out):  # unlike Path.is_dir, does not raise if permission is denied
        raise UserError(f"{flag} {out} is a folder: name a file")
    folder = _existing(out.absolute().parent)
    if not os.path.isdir(folder):
        raise UserError(f"{flag} {out} cannot be created, since {folder} is a file: choose another name")
    _check_writable(f"{flag} {out}", folder, "choose another")
    return out


def result_file_or_none(out: str, run: Path, endings: Sequence[str] = (), what: str = "") -> Path | None:
    """The file that `--out` names, or `None` if it is omitted and results go to RUN/evaluations.

    Raises `UserError` if that folder is not writable, and like `check_file`.
    """
    if out:
        return check_file(Path(out), endings, what)
    folder = run / "evaluations"
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UserError(f"results are kept in {folder}, but that is a file: move it away, or name a file with --out")
    _check_writable(f"results are kept in {folder}", _existing(folder.absolute()), "name a file with --out")
    return None


def check_folder(out: Path) -> Path:
    """Check a folder, which may not exist yet. Raises `UserError` if it cannot be created or is not writable."""
    existing = _existing(out.absolute())
    if not os.path.isdir(existing):
        problem = "is a file" if existing == out.absolute() else f"cannot be created, since {existing} is a file"
        raise UserError(f"--out {out} {problem}: name a folder")
    _check_writable(f"--out {out}", existing, "choose another")
    return out


def check_new_run(out: Path) -> Path:
    """Check a folder for a new run. Raises `UserError` if it already holds a run or learned views, and like
    `check_folder`."""
    if (out / "view_learning.json").exists():  # with checkpoints, but nothing that `resume` continues
        raise UserError(
            f"{out} already holds learned views: give another --out, and train on them with --learned {out}"
        )
    if (out / "settings.json").exists() or (out / "checkpoint").exists():
        raise UserError(f"{out} already holds a run: continue it with `vantage resume {out}`, or give another --out")
    return check_folder(out)


def _existing(path: Path) -> Path:
    """A path, or the nearest folder above it that exists."""
    return next(one for one in (path, *path.parents) if os.path.exists(one))


def _check_writable(what: str, folder: Path, instead: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{what}: you have no permission to write to the folder {folder}; {instead}")
