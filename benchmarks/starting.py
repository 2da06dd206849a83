"""How long commands take before they do anything: imports of torch, Vantage and a peer, commands that only answer, and
one that reads a small run.

    python benchmarks/starting.py

Each case is a process of its own. Processor time, children included; compiled modules are kept, as Python does.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from itertools import count
from pathlib import Path

import numpy as np
from timing import interleave, speedup, write_results

IMPORTS = {
    "torch": "import torch",
    "torchvision": "import torchvision",
    "lightly": "from lightly.loss import NTXentLoss; from lightly.transforms import SimCLRTransform",
    "vantage": "import vantage.recipes, vantage.training, vantage.evaluate, vantage.report",
}
COMMANDS = {
    "vantage --help": ("--help",),
    "vantage recipes moco_v2": ("recipes", "moco_v2"),
    "vantage pretrain, of images that are not there": ("pretrain", "moco_v2", "--data", "nowhere", "--out", "nowhere"),
    "vantage evaluate knn --help": ("evaluate", "knn", "--help"),
}


def processor_time() -> float:
    """Seconds of processor time of all processes that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(*words: str) -> None:
    """Run Python with these words; what it prints and its status do not matter."""
    subprocess.run([sys.executable, *words], env=os.environ | {"PYTHONDONTWRITEBYTECODE": ""}, capture_output=True)


SMALL = ("--epochs", "1", "--batch-size", "16", "--size", "16", "--backbone", "Convolutions((4, 8))")


def small_run(folder: Path) -> Path:
    """A run of four convolutions on 48 images of noise, made in `folder`."""
    images = np.random.default_rng(0).integers(0, 256, (48, 16, 16, 3), dtype=np.uint8)
    np.savez(folder / "images.npz", images=images)
    run("-m", "vantage.cli", "pretrain", "simclr", "--data", f"{folder}/images.npz", "--out", f"{folder}/run", *SMALL)
    return folder / "run"


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    cases = {f"import {name}": lambda code=code: run("-c", code) for name, code in IMPORTS.items()}
    cases |= {name: lambda words=words: run("-m", "vantage.cli", *words) for name, words in COMMANDS.items()}
    with tempfile.TemporaryDirectory() as name:
        export, numbers = ("-m", "vantage.cli", "export", str(small_run(Path(name))), "--to", "safetensors"), count()
        cases["vantage export, of a small run"] = lambda: run(*export, "--out", f"{name}/{next(numbers)}.safetensors")
        seconds = interleave(cases, rounds, processor_time)
        assert len(list(Path(name).glob("*.safetensors"))) >= rounds
    rows = [
        {
            "case": name,
            "seconds": round(statistics.median(times), 3),
            "times as long as importing torch": round(1 / speedup(seconds, name, "import torch"), 2),
        }
        for name, times in seconds.items()
    ]
    for row in rows:
        print(row)
    print(write_results("starting", rows))


if __name__ == "__main__":
    main()
