"""Messages for failures that the user can do something about, and that no other code has turned into a `UserError`."""

import errno
import os
import re
import sys

from vantage.cli.printing.streams import FULL, discard
from vantage.errors import first_line
from vantage.storage.files import no_temporary_files

__all__ = ["message_for"]

_OUT_OF_MEMORY = re.compile("^OutOfMemoryError|DefaultCPUAllocator: can't allocate memory")  # torch's, on GPU and CPU
_LEFT_ALONE = re.compile("(?i)connection (was )?(reset|closed) by (remote )?peer")  # gloo's and that of torch's store


def message_for(problem: Exception) -> str:
    """The message for an operating-system error that the user can fix and that no other code has turned into a
    `UserError`; empty for other errors."""
    encoding = sys.getfilesystemencoding()
    if isinstance(problem, UnicodeEncodeError) and problem.encoding == encoding != "utf-8":
        return f"file names are encoded as {encoding} here, and a name has characters that it lacks: set PYTHONUTF8=1"
    if isinstance(problem, RuntimeError) and str(problem).startswith("DataLoader worker (pid"):
        return (
            "a process that decodes images was killed, perhaps because memory ran out: continue a run with vantage"
            " resume, or run the same again, with a smaller --num-workers"
        )
    if isinstance(problem, RuntimeError) and _LEFT_ALONE.search(str(problem)):
        return "another process of this command has ended, which this one waited for: its own lines say why"
    if isinstance(problem, ValueError) and str(problem).startswith("Expected more than 1 value per channel"):
        return "BatchNorm meets a single image at a time and cannot normalize it: give a larger --batch-size"
    if isinstance(problem, MemoryError) or _OUT_OF_MEMORY.search(f"{type(problem).__name__}: {problem}"):
        return f"memory ran out: give a smaller batch, network or view ({first_line(problem)})"
    if not isinstance(problem, OSError):
        return ""
    if isinstance(problem, FileNotFoundError) and not problem.filename and not _is_somewhere():
        return "the current folder was removed: change to one that exists"
    if str(problem.strerror).startswith("No usable temporary directory"):  # a library asked for one on import
        return str(no_temporary_files(problem))
    if problem.errno == errno.ENAMETOOLONG:
        return f"no path can be as long as {problem.filename}"
    if problem.errno not in FULL:
        return ""
    try:
        sys.stdout.flush()
    except OSError:
        discard(sys.stdout)
    what = problem.filename or "the output"
    return f"{what} could not be written: {problem.strerror}. Free some space and run the same again"


def _is_somewhere() -> bool:
    """Whether the current folder exists."""
    try:
        return bool(os.getcwd())
    except FileNotFoundError:
        return False
