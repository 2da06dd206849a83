"""What a run writes about itself: its numbers by epoch, and where it comes from."""

import json
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from vantage.errors import UserError
from vantage.storage.files import write_result

__all__ = ["Metrics", "hardware", "provenance", "read_provenance", "versions", "write_json"]

_PACKAGES = ("vantage-ssl", "torch", "torchvision", "lightning-fabric", "numpy", "pillow", "scikit-learn", "timm")


class Metrics:
    """`metrics.jsonl`, a line for each epoch, and the same numbers as TensorBoard events."""

    def __init__(self, folder: Path, step: int) -> None:
        """Rows after `step` are dropped: a resumed run writes them again."""
        from torch.utils.tensorboard.writer import SummaryWriter  # half a second to import: only where a run trains

        self.path = folder / "metrics.jsonl"
        kept = [row for row in read_metrics(folder) if row["step"] <= step]
        write_text(self.path, "".join(json.dumps(row) + "\n" for row in kept))
        self.events = SummaryWriter(str(folder / "events"), purge_step=step + 1 if step else None)

    def write(self, row: dict[str, Any]) -> None:
        """Add a row; it has a `step`."""
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        for name, value in row.items():
            if isinstance(value, float):
                self.events.add_scalar(name, value, row["step"])
        self.events.flush()

    def close(self) -> None:
        """Flush and close the events."""
        self.events.close()


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The rows written so far; a last line cut by a kill does not count."""
    path = folder / "metrics.jsonl"
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            row = json.loads(line)
        except ValueError:
            break
        if isinstance(row, dict) and isinstance(row.get("step"), int):  # another's line is not ours to keep in order
            rows.append(row)
    return rows


def provenance(fingerprint: str, images: int) -> dict[str, Any]:
    """Commit, versions, hardware and the data's fingerprint."""
    return {
        "data": {"fingerprint": fingerprint, "images": images},
        "commit": _commit(),
        "versions": versions(),
        "hardware": hardware(),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def read_provenance(folder: Path) -> list[dict[str, Any]]:
    """Where a run came from, at its start and each time it was resumed; empty where nothing tells it.

    Raises `UserError` where the file is damaged: which images the run began on could not be told.
    """
    path = folder / "provenance.json"
    if not path.exists():
        return []
    try:
        told = json.loads(path.read_text())
        if isinstance(told, list) and all(isinstance(row["data"], dict) for row in told):
            return told
        problem = "it is no list of records"
    except (OSError, ValueError, KeyError, TypeError) as found:
        problem = str(found)
    raise UserError(f"{path} is damaged ({problem}): remove it to go on without a check that the images are the same")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def hardware() -> dict[str, Any]:
    """Processor, cores in use and GPUs."""
    gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    return {"processor": _processor(), "cores": os.cpu_count(), "threads": torch.get_num_threads(), "gpus": gpus}


def write_json(path: Path, value: Any) -> None:
    """Write JSON whole or not at all."""
    write_text(path, json.dumps(value, indent=1) + "\n")


def write_text(path: Path, text: str) -> None:
    """Write a file whole or not at all: under another name, flushed to disk, renamed. Raises `UserError` if it cannot
    be."""
    write_result(path, text, path.name)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of the source tree that runs, if it is one."""
    here = Path(__file__).parent
    try:
        asked = subprocess.run(["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return asked.stdout.strip() or None if asked.returncode == 0 else None
