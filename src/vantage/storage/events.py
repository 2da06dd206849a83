"""The numbers of a run as TensorBoard reads them.

TensorBoard's own writer uses a background thread, which prints a traceback if the disk is full and may block the
caller. Here each record is written in the caller's thread, and an error is raised there.
"""

import itertools
import os
import socket
import time
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from vantage.storage.files import append

__all__ = ["Events"]

_NUMBERS = itertools.count()


class Events:
    """An event file in the folder `events`: each start of a run writes its own."""

    def __init__(self, folder: Path, step: int) -> None:
        """TensorBoard drops what earlier files hold for steps after `step`. Raises `OSError`."""
        name = f"events.out.tfevents.{time.time():010.0f}.{socket.gethostname()}.{os.getpid()}.{next(_NUMBERS)}"
        self.path = folder / "events" / name
        self.path.parent.mkdir(parents=True, exist_ok=True)
        events: list[dict[str, Any]] = [{"file_version": "brain.Event:2"}]
        if step:
            events.append({"step": step + 1, "session_log": {"status": 1}})  # START
        append(self.path, b"".join(map(_record, events)))

    def write(self, numbers: Mapping[str, float], step: int) -> None:
        """Add numbers of a step by name. Raises `OSError`."""
        values = [{"tag": name, "simple_value": value} for name, value in numbers.items()]
        append(self.path, _record({"step": step, "summary": {"value": values}}))


def _record(content: Mapping[str, Any]) -> bytes:
    """An event with the present time, its length and its checksums."""
    from tensorboard.compat.proto import event_pb2  # takes half a second to import: only when a run trains
    from tensorboard.summary.writer.record_writer import RecordWriter

    record = BytesIO()
    event = event_pb2.Event(wall_time=time.time(), **content)  # pyright: ignore[reportAttributeAccessIssue]
    RecordWriter(record).write(event.SerializeToString())
    return record.getvalue()
