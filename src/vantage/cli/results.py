"""Where a verb's results go: the file named with --out, and the lines that are told."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vantage.cli.console import Console
from vantage.errors import UserError

if TYPE_CHECKING:
    from vantage.evaluate import Result

__all__ = ["check_folder", "check_out", "kept_or_out", "tell"]


def check_out(out: Path, endings: Sequence[str] = (), what: str = "") -> Path:
    """The file that --out names, before any work is done for it.

    Raises `UserError` for another ending than those given, where there are some (`what` tells what is written), for a
    folder that is not there or may not be written to, and for a name that is a folder's.
    """
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


def kept_or_out(asked: Mapping[str, Any], endings: Sequence[str] = (), what: str = "") -> Path | None:
    """The file that --out names; without, none, for results that are then kept in RUN/evaluations.

    Raises `UserError` where that may not be written to, and as `check_out` does.
    """
    if asked["out"]:
        return check_out(Path(asked["out"]), endings, what)
    run = Path(asked["run"])
    kept = run / "evaluations"
    if os.path.exists(kept) and not os.path.isdir(kept):
        raise UserError(f"results are kept in {kept}, but that is a file: move it away, or name a file with --out")
    _check_writable(f"results are kept in {kept}", kept if os.path.exists(kept) else run, "name a file with --out")
    return None


def check_folder(out: Path) -> Path:
    """The folder that --out names, which need not be there yet; raises `UserError` where it cannot be."""
    there = next(place for place in (out.absolute(), *out.absolute().parents) if os.path.exists(place))
    if not os.path.isdir(there):
        found = "is a file" if there == out.absolute() else f"cannot be made: {there} is a file"
        raise UserError(f"--out {out} {found}: give a folder")
    _check_writable(f"--out {out}", there, "choose another")
    return out


def tell(
    result: "Result", console: Console, run: str, out: Path | None = None, test_images: str = "test images"
) -> None:
    """By which protocol a run was judged, on which images, what came out, and in which file it is kept."""
    from vantage.evaluate.result import path_of

    console.note(f"{result.protocol} version {result.version}; {test_images}: {result.test_split}")
    for line in result.lines():
        console.result(line)
    console.note(f"kept in {path_of(result, Path(run), out)}")


def _check_writable(asked: str, folder: Path, instead: str) -> None:
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"{asked}: you may not write to the folder {folder}; {instead}")
