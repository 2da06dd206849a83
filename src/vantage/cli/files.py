"""Files and folders that `--out` names, checked before any work is done for them."""

import os
from collections.abc import Sequence
from pathlib import Path

from vantage.errors import UserError

__all__ = ["check_file", "check_folder", "check_new_run", "file_or_kept"]


def check_file(out: Path, endings: Sequence[str] = (), what: str = "") -> Path:
    """A file that can be written. Raises `UserError` for an ending other than those listed, where there are some
    (`what` is written), for a folder that is not there or may not be written to, and for the name of a folder."""
    if endings and out.suffix not in endings:
        every = " or ".join(filter(None, (", ".join(endings[:-1]), endings[-1])))
        raise UserError(f"--out {out}: {what} is written; end the name with {every}")
    folder = out.absolute().parent
    if not os.path.isdir(folder):  # unlike Path.is_dir, false and no exception where it may not be looked at
        raise UserError(f"--out {out}: there is no folder {folder}")
    if os.path.isdir(out):
        raise UserError(f"--out {out} is a folder: name a file")
    _check_writable(f"--out {out}", folder, "choose another")
    return out


def file_or_kept(out: str, run: Path, endings: Sequence[str] = (), what: str = "") -> Path | None:
    """The file that `--out` names; if omitted, none, since results are then kept in RUN/evaluations.

    Raises `UserError` where that may not be written to, and as `check_file` does.
    """
    if out:
        return check_file(Path(out), endings, what)
    kept = run / "evaluations"
    if os.path.exists(kept) and not os.path.isdir(kept):
        raise UserError(f"results are kept in {kept}, but that is a file: move it away, or name a file with --out")
    _check_writable(f"results are kept in {kept}", kept if os.path.exists(kept) else run, "name a file with --out")
    return None


def check_folder(out: Path) -> Path:
    """A folder, which need not exist yet; raises `UserError` where it cannot be made or written to."""
    existing = next(path for path in (out.absolute(), *out.absolute().parents) if os.path.exists(path))
    if not os.path.isdir(existing):
        found = "is a file" if existing == out.absolute() else f"cannot be made: {existing} is a file"
        raise UserError(f"--out {out} {found}: give a folder")
    _check_writable(f"--out {out}", existing, "choose another")
    return out


def check_new_run(out: Path) -> Path:
    """A folder for a new run; raises `UserError` where it holds one already, and as `check_folder` does."""
    if (out / "settings.json").exists() or (out / "checkpoint").exists():
        raise UserError(f"{out} holds a run already: continue it with `vantage resume {out}`, or give another --out")
    return check_folder(out)


def _check_writable(what: str, folder: Path, instead: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{what}: you may not write to the folder {folder}; {instead}")
