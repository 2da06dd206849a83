"""Files and folders that `--out` names, checked before any work is done."""

import os
from collections.abc import Sequence
from pathlib import Path

from vantage.errors import UserError

__all__ = ["check_file", "check_folder", "check_new_run", "result_file_or_none"]


def check_file(out: Path, endings: Sequence[str] = (), what: str = "", flag: str = "--out") -> Path:
    """A file that can be written; `what` is what it will hold, and `flag` the option that names it.

    Raises `UserError` for an ending that is not one of `endings`, if there are any, for a folder that does not exist or
    is not writable, and for the name of a folder.
    """
    if endings and out.suffix not in endings:
        every = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        raise UserError(f"{flag} {out}: this file holds {what}; end the name with {every}")
    folder = out.absolute().parent
    if not os.path.isdir(folder):  # unlike Path.is_dir, raises nothing where permission is denied
        raise UserError(f"{flag} {out}: the folder {folder} does not exist; create it first")
    if os.path.isdir(out):
        raise UserError(f"{flag} {out} is a folder: name a file")
    _check_writable(f"{flag} {out}", folder, "choose another")
    return out


def result_file_or_none(out: str, run: Path, endings: Sequence[str] = (), what: str = "") -> Path | None:
    """The file that `--out` names, or `None` if it is omitted: results are then kept in RUN/evaluations.

    Raises `UserError` where that folder is not writable, and as `check_file` does.
    """
    if out:
        return check_file(Path(out), endings, what)
    folder = run / "evaluations"
    if os.path.exists(folder) and not os.path.isdir(folder):
        raise UserError(f"results are kept in {folder}, but that is a file: move it away, or name a file with --out")
    existing = next(path for path in (folder, run, *run.absolute().parents) if os.path.exists(path))
    _check_writable(f"results are kept in {folder}", existing, "name a file with --out")
    return None


def check_folder(out: Path) -> Path:
    """A folder, which need not exist yet; raises `UserError` where it cannot be created or is not writable."""
    existing = next(path for path in (out.absolute(), *out.absolute().parents) if os.path.exists(path))
    if not os.path.isdir(existing):
        problem = "is a file" if existing == out.absolute() else f"cannot be created, since {existing} is a file"
        raise UserError(f"--out {out} {problem}: name a folder")
    _check_writable(f"--out {out}", existing, "choose another")
    return out


def check_new_run(out: Path) -> Path:
    """A folder for a new run; raises `UserError` where it already holds a run, and as `check_folder` does."""
    if (out / "settings.json").exists() or (out / "checkpoint").exists():
        raise UserError(f"{out} already holds a run: continue it with `vantage resume {out}`, or give another --out")
    return check_folder(out)


def _check_writable(what: str, folder: Path, instead: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{what}: you have no permission to write to the folder {folder}; {instead}")
