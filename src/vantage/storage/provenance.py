"""Where a result comes from: commit, versions, hardware and images."""

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from vantage.errors import UserError

__all__ = ["command", "first_images", "hardware", "processor_has_bf16", "provenance", "read_provenance", "versions"]

_PACKAGES = ("vantage-ssl", "torch", "torchvision", "lightning-fabric", "numpy", "pillow", "scikit-learn", "timm")


def provenance(fingerprint: str, images: int) -> dict[str, Any]:
    """Commit, versions, hardware, the data's fingerprint, and the command with the folder that it was given in."""
    return {
        "data": {"fingerprint": fingerprint, "images": images},
        "commit": _commit(),
        "versions": versions(),
        "hardware": hardware(),
        "command": command(),
        "folder": _current_folder(),
    }


def command() -> str:
    """The command line of this process, as a shell reads it, with the program's name but not its folder."""
    return shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def first_images(folder: Path) -> dict[str, Any] | None:
    """Number and fingerprint of the images that a run started on; `None` if there is no record of it.

    Raises `UserError` if the record is damaged.
    """
    records = read_provenance(folder)
    return records[0]["data"] if records else None


def read_provenance(folder: Path) -> list[dict[str, Any]]:
    """Where a run came from, at its start and each time it was resumed; empty if there is no record.

    Raises `UserError` if the file is damaged: it is then unknown which images the run began on.
    """
    path = folder / "provenance.json"
    if not path.exists():
        return []
    try:
        records = json.loads(path.read_text())
        if isinstance(records, list) and all(map(_is_record, records)):
            return records
        problem = "it is not a list of records"
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        problem = str(error)
    raise UserError(f"{path} is damaged ({problem}): remove it to go on without a check that the images are the same")


def _is_record(record: Any) -> bool:
    """Whether this is what `provenance` makes, perhaps with `init`, the start of a run. What earlier versions did not
    record may be missing."""
    if not isinstance(record, dict):
        return False
    data, start = record["data"], record.get("init") or {"from": "", "sha256": ""}
    parts = [record.get(name) or {} for name in ("hardware", "versions")]
    known = isinstance(record.get("folder", ""), str)
    gpus = (record.get("hardware") or {}).get("gpus") or []
    images = isinstance(data["images"], int) and 0 <= data["images"] < 1 << 63 and isinstance(data["fingerprint"], str)
    began = isinstance(start["from"], str) and isinstance(start["sha256"], str)
    return images and began and known and all(isinstance(part, dict) for part in parts) and isinstance(gpus, list)


def versions(packages: Sequence[str] = ()) -> dict[str, str]:
    """Versions of Python, of the packages that numbers depend on, and of `packages`, as far as they are installed."""
    by_package = {package: _version(package) for package in (*_PACKAGES, *packages)}
    return {"python": platform.python_version()} | {package: each for package, each in by_package.items() if each}


@cache  # of what is loaded: a package that is installed meanwhile is not
def _version(package: str) -> str:
    """The version of a package; "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def hardware() -> dict[str, Any]:
    """Processor, whether it has bfloat16 (which runs then use), cores, threads and GPUs."""
    gpus = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    processor = {"processor": _processor(), "bfloat16": processor_has_bf16(), "cores": os.cpu_count()}
    return processor | {"threads": torch.get_num_threads(), "gpus": gpus}


def processor_has_bf16() -> bool:
    """Whether the processor has instructions for bfloat16."""
    return bool(torch.cpu._is_avx512_bf16_supported()) or bool(torch.cpu._is_amx_tile_supported())


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


@cache  # what runs was loaded from it
def _commit() -> str | None:
    """The commit of this source tree, if it is in a git repository."""
    here = Path(__file__).parent
    try:
        git = subprocess.run(["git", "-C", str(here), "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return git.stdout.strip() or None if git.returncode == 0 else None
