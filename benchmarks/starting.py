"""How long commands take before they do anything: imports of torch, Vantage and a peer, and commands that only answer.

    python benchmarks/starting.py

Each case is a process of its own. Processor time, children included; compiled modules are kept, as Python does.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys

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


def main() -> None:
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    cases = {f"import {name}": lambda code=code: run("-c", code) for name, code in IMPORTS.items()}
    cases |= {name: lambda words=words: run("-m", "vantage.cli", *words) for name, words in COMMANDS.items()}
    seconds = interleave(cases, rounds, processor_time)
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
