"""Locks on files and folders, which end with the process that holds them, even if it is killed."""

import fcntl

__all__ = ["take_lock"]


def take_lock(handle: int, without: bool) -> bool:
    """Whether this process now holds the lock of an open file or folder, and no other does; it ends when the file is
    closed. `without` is the answer where the file system has no locks."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return without
    return True
